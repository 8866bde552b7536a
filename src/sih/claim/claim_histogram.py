r"""The gap of Claim 1 for random matrices, exactly: App. E and Fig. 3 (left).

With $E_r = \mathbb E[p_r/\sum_l p_l]$ for a true lag k, the gap is
$E_k - \max_{r \ne k} E_r$.

The paper estimates the gap by sampling. For comparison one matrix is sampled here, and
`sih.claim.sampled` has the samples of a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from sih.base.record import Size
from sih.base.stats import Estimate
from sih.claim.exact import ClaimTable, claim_table
from sih.claim.monte_carlo import PAPER_LAGS, MonteCarlo, estimates, random_matrices
from sih.claim.sampled import PRINTED_LENGTH, PRINTED_SEQUENCES, sampled_gaps
from sih.results.experiment import (
    Experiment,
    Lags,
    MatrixLaw,
    Positive,
    Seeded,
    States,
    check_comparable,
)


@dataclass(frozen=True)
class ClaimConfig(Seeded):
    """Random matrices, and the lags to compare."""

    num_states: States = 10
    matrices: Size = 1000
    """Number of random matrices."""
    lags: Lags = PAPER_LAGS
    matrix_law: MatrixLaw = "uniform"
    concentration: Positive = 1.0
    tolerance: Positive = 1e-10
    """The error allowed in each expectation."""
    sampled_sequences: Size = PRINTED_SEQUENCES
    """Sequences per lag for the sampled matrix."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_comparable(self.lags)


@dataclass(frozen=True, eq=False)
class SampledMatrix:
    """Gaps of the first matrix by sampling as in the paper, with bounds on their
    errors.
    """

    gaps: Float[Tensor, " true"]
    error: Float[Tensor, " true"]


@dataclass(frozen=True, eq=False)
class ClaimMargins:
    """The gap of each matrix for each true lag, accurate to `error`.

    `sampled` has gaps of the same matrices by sampling, as far as the package has them.
    `first` has those of the first matrix, from a new sample.
    """

    num_states: int
    lags: tuple[int, ...]
    margins: Float[Tensor, "matrix true"]
    error: float
    sampled: Float[Tensor, "fewer true"] | None = None
    first: SampledMatrix | None = None


def drawn_matrices(config: ClaimConfig) -> Float[Tensor, "matrix state state"]:
    """Return the random matrices of a configuration."""
    return random_matrices(
        config.num_states,
        config.matrices,
        seed=config.seed,
        concentration=config.concentration,
        law=config.matrix_law,
    )


def exact_table(config: ClaimConfig) -> ClaimTable:
    """Return the expectations of random matrices, for every true lag and every lag."""
    return claim_table(drawn_matrices(config), config.lags, tolerance=config.tolerance)


def printed_check(config: ClaimConfig) -> MonteCarlo:
    """Return the samples of the paper's check for these matrices."""
    return MonteCarlo(
        config.num_states,
        config.matrices,
        config.lags,
        config.sampled_sequences,
        max(PRINTED_LENGTH, config.lags[-1] + 1),
        config.concentration,
        config.seed,
        "printed",
        config.matrix_law,
    )


def compute(config: ClaimConfig, store: object) -> ClaimMargins:
    """Return the exact gaps of random matrices, with samples for the first one."""
    check = printed_check(config)
    found = gaps_of(exact_table(config), config.num_states)
    first = sampled_matrix(next(estimates(check)), config.lags)
    return replace(found, sampled=sampled_gaps(check), first=first)


def sampled_matrix(means: Estimate[Tensor], lags: tuple[int, ...]) -> SampledMatrix:
    """Return the gaps of means by true lag and lag.

    The means of two lags come from the same sequences, so the error of their difference
    is at most the sum of their errors.
    """
    table = ClaimTable(lags, means.mean, 0.0)
    own = means.error.diagonal()
    rival = means.error.gather(1, table.gaps.argmin(dim=1, keepdim=True)).squeeze(1)
    return SampledMatrix(table.margins, own + rival)


def gaps_of(table: ClaimTable, num_states: int) -> ClaimMargins:
    """Return the gaps for given expectations."""
    return ClaimMargins(num_states, table.lags, margins_of(table), table.error)


def margins_of(table: ClaimTable) -> Float[Tensor, "matrix true"]:
    """Return one row of gaps per matrix, also for a single matrix."""
    return table.margins.reshape(-1, len(table.lags))


EXPERIMENT = Experiment("claim_histogram", ClaimConfig(), ClaimMargins, compute)
