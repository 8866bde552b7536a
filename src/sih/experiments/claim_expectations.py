r"""$\mathbb E[p_r/\sum_l p_l]$ for every true lag and every scored lag, exactly: the paper's figures of App. E."""

from dataclasses import dataclass

from sih.experiments.claim_histogram import ClaimConfig, exact_table
from sih.experiments.experiment import Experiment
from sih.runs.run_store import RunStore
from sih.theory.claim import ClaimTable

CAPTION = (
    "Expected normalised transition probability of every lag r, a panel for each true lag (red), for the paper's "
    "twelve lags; exact expectations, means over matrices with Dirichlet(1) rows, bars one standard deviation over "
    "matrices. Dashes: one over the number of lags. No models are trained."
)


@dataclass(frozen=True)
class ExpectationBars:
    """Holds `mean[true lag][lag]` over the matrices, and their standard deviation (0 for one matrix).

    `margins[matrix]` is the gap of Claim 1 for every true lag, right to within `error`.
    """

    num_states: int
    matrices: int
    lags: tuple[int, ...]
    mean: list[list[float]]
    spread: list[list[float]]
    margins: list[list[float]]
    error: float


def compute(config: ClaimConfig, store: RunStore) -> ExpectationBars:
    """Compute the expectations of random matrices exactly, and average them."""
    return of_table(exact_table(config), config.num_states)


def of_table(table: ClaimTable, num_states: int) -> ExpectationBars:
    """Make the bars of expectations that are known already."""
    values = table.expectations.reshape(-1, len(table.lags), len(table.lags))
    spread = values.std(dim=0, correction=min(1, len(values) - 1))
    margins = table.margins.reshape(-1, len(table.lags)).tolist()
    return ExpectationBars(
        num_states, len(values), table.lags, values.mean(dim=0).tolist(), spread.tolist(), margins, table.error
    )


FEW, MORE_STATES = ClaimConfig(matrices=10), ClaimConfig(num_states=25, matrices=10)
EXPERIMENT = Experiment("claim_expectations", CAPTION, FEW, ExpectationBars, compute)
EXPERIMENT_25 = Experiment("claim_expectations_25", CAPTION, MORE_STATES, ExpectationBars, compute)
