r"""Claim 1 over random matrices, exactly: the paper's figures of App. E and Fig. 3 (left).

$E_r = \mathbb E[p_r/\sum_l p_l]$ for every true lag k and every scored lag r, and the gap $E_k - \max_{r \ne k} E_r$.
"""

from dataclasses import dataclass

from sih.results.experiment import Experiment, Seeded
from sih.runs.run_store import RunStore
from sih.theory.claim import ClaimTable, claim_table
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

GAP_CAPTION = (
    "Gap of Claim 1, the expected normalised probability of the true lag minus the largest of the others, for every "
    "matrix (10 states, Dirichlet(1) rows) and every true lag of the paper's twelve. The expectations are exact (to "
    "1e-10), not sampled: there are no error bars. No models are trained."
)
CAPTION = (
    "Expected normalised transition probability of every lag r, a panel for each true lag (red), for the paper's "
    "twelve lags; exact expectations, means over matrices with Dirichlet(1) rows, bars one standard deviation over "
    "matrices. Dashes: one over the number of lags. No models are trained."
)


@dataclass(frozen=True)
class ClaimConfig(Seeded):
    """Asks for the expectations of Claim 1 for random matrices."""

    num_states: int = 10
    matrices: int = 1000
    lags: tuple[int, ...] = PAPER_LAGS
    concentration: float = 1.0
    tolerance: float = 1e-10


@dataclass(frozen=True)
class ClaimMargins:
    """Holds `margins[matrix][true lag]`, right to within `error`."""

    num_states: int
    lags: tuple[int, ...]
    margins: list[list[float]]
    error: float


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


def exact_table(config: ClaimConfig) -> ClaimTable:
    """Compute the expectations of random matrices, for every true lag and every lag."""
    P = random_matrices(
        config.num_states, config.matrices, seed=config.seed, concentration=config.concentration
    )
    return claim_table(P, config.lags, tolerance=config.tolerance)


def compute_gaps(config: ClaimConfig, store: RunStore) -> ClaimMargins:
    """Compute the gap of Claim 1 for random matrices exactly."""
    return gaps_of(exact_table(config), config.num_states)


def compute(config: ClaimConfig, store: RunStore) -> ExpectationBars:
    """Compute the expectations of random matrices exactly, and average them."""
    return bars_of(exact_table(config), config.num_states)


def gaps_of(table: ClaimTable, num_states: int) -> ClaimMargins:
    """Take the margins of expectations that are known already."""
    margins = table.margins.reshape(-1, len(table.lags))
    return ClaimMargins(num_states, table.lags, margins.tolist(), table.error)


def bars_of(table: ClaimTable, num_states: int) -> ExpectationBars:
    """Make the bars of expectations that are known already."""
    values = table.expectations.reshape(-1, len(table.lags), len(table.lags))
    spread = values.std(dim=0, correction=min(1, len(values) - 1))
    margins = table.margins.reshape(-1, len(table.lags)).tolist()
    return ExpectationBars(
        num_states,
        len(values),
        table.lags,
        values.mean(dim=0).tolist(),
        spread.tolist(),
        margins,
        table.error,
    )


HISTOGRAM = Experiment("claim_histogram", GAP_CAPTION, ClaimConfig(), ClaimMargins, compute_gaps)
FEW, MORE_STATES = ClaimConfig(matrices=10), ClaimConfig(num_states=25, matrices=10)
EXPERIMENT = Experiment("claim_expectations", CAPTION, FEW, ExpectationBars, compute)
EXPERIMENT_25 = Experiment("claim_expectations_25", CAPTION, MORE_STATES, ExpectationBars, compute)
