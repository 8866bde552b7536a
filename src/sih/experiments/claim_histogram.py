r"""The gap of Claim 1 over random matrices, exactly: the paper's Fig. 3 (left), $E_k - \max_{r \ne k} E_r$."""

from dataclasses import dataclass

from sih.experiments.experiment import Experiment
from sih.runs.run_store import RunStore
from sih.theory.claim import ClaimTable, claim_table
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

CAPTION = (
    "Gap of Claim 1, the expected normalised probability of the true lag minus the largest of the others, for every "
    "matrix (10 states, Dirichlet(1) rows) and every true lag of the paper's twelve. The expectations are exact (to "
    "1e-10), not sampled: there are no error bars. No models are trained."
)


@dataclass(frozen=True)
class ClaimConfig:
    """Asks for the expectations of Claim 1 for random matrices."""

    num_states: int = 10
    matrices: int = 1000
    lags: tuple[int, ...] = PAPER_LAGS
    concentration: float = 1.0
    seed: int = 0
    tolerance: float = 1e-10


@dataclass(frozen=True)
class ClaimMargins:
    """Holds `margins[matrix][true lag]`, right to within `error`."""

    num_states: int
    lags: tuple[int, ...]
    margins: list[list[float]]
    error: float


def compute(config: ClaimConfig, store: RunStore) -> ClaimMargins:
    """Compute the gap of Claim 1 for random matrices exactly."""
    return of_table(exact_table(config), config.num_states)


def exact_table(config: ClaimConfig) -> ClaimTable:
    """Compute the expectations of random matrices, for every true lag and every lag."""
    P = random_matrices(config.num_states, config.matrices, seed=config.seed, concentration=config.concentration)
    return claim_table(P, config.lags, tolerance=config.tolerance)


def of_table(table: ClaimTable, num_states: int) -> ClaimMargins:
    """Take the margins of expectations that are known already."""
    margins = table.margins.reshape(-1, len(table.lags))
    return ClaimMargins(num_states, table.lags, margins.tolist(), table.error)


EXPERIMENT = Experiment("claim_histogram", CAPTION, ClaimConfig(), ClaimMargins, compute)
