r"""The gap of Claim 1 for random matrices, exactly: App. E and Fig. 3 (left).

With $E_r = \mathbb E[p_r/\sum_l p_l]$ for a true lag k, the gap is $E_k - \max_{r \ne k} E_r$.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sih.claim.exact import ClaimTable, claim_table
from sih.claim.monte_carlo import PAPER_LAGS, random_matrices
from sih.results.experiment import Experiment, Seeded


@dataclass(frozen=True)
class ClaimConfig(Seeded):
    """Random matrices, and lags to tell apart."""

    num_states: int = 10
    matrices: int = 1000
    lags: tuple[int, ...] = PAPER_LAGS
    concentration: float = 1.0
    tolerance: float = 1e-10


@dataclass(frozen=True, eq=False)
class ClaimMargins:
    """The gap of each matrix for each true lag, right to within `error`."""

    num_states: int
    lags: tuple[int, ...]
    margins: Float[Tensor, "matrix true"]
    error: float


def exact_table(config: ClaimConfig) -> ClaimTable:
    """Return the expectations of random matrices, for every true lag and every lag."""
    P = random_matrices(
        config.num_states, config.matrices, seed=config.seed, concentration=config.concentration
    )
    return claim_table(P, config.lags, tolerance=config.tolerance)


def compute(config: ClaimConfig, store: object) -> ClaimMargins:
    """Compute the gaps of random matrices exactly."""
    return gaps_of(exact_table(config), config.num_states)


def gaps_of(table: ClaimTable, num_states: int) -> ClaimMargins:
    """Return the gaps of expectations that are known already."""
    return ClaimMargins(num_states, table.lags, margins_of(table), table.error)


def margins_of(table: ClaimTable) -> Float[Tensor, "matrix true"]:
    """Return a row of gaps for each matrix, of one matrix too."""
    return table.margins.reshape(-1, len(table.lags))


EXPERIMENT = Experiment("claim_histogram", ClaimConfig(), ClaimMargins, compute)
