r"""Exact expectations of Claim 1 (App. E) over random matrices.

$E_r = \mathbb E[p_r/\sum_l p_l]$ for every true lag k and every scored lag r.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxtyping import Float
from torch import Tensor

from sih.claim.claim_histogram import ClaimConfig, exact_table, margins_of, printed_check
from sih.claim.exact import ClaimTable
from sih.claim.sampled import sampled_bars
from sih.results.experiment import Experiment


@dataclass(frozen=True, eq=False)
class ExpectationBars:
    """Mean over the matrices, with their standard deviation (0 for one matrix)."""

    num_states: int
    matrices: int
    lags: tuple[int, ...]
    mean: Float[Tensor, "true lag"]
    spread: Float[Tensor, "true lag"]
    margins: Float[Tensor, "matrix true"]
    """The gap of Claim 1 for every true lag, accurate to `error`."""
    error: float
    sampled: Float[Tensor, "true lag"] | None = None
    """The same mean by sampling as in the paper, if it is in the package."""


def compute(config: ClaimConfig, store: object) -> ExpectationBars:
    """Return the mean of the exact expectations over random matrices."""
    bars = bars_of(exact_table(config), config.num_states)
    return replace(bars, sampled=sampled_bars(printed_check(config)))


def bars_of(table: ClaimTable, num_states: int) -> ExpectationBars:
    """Return the bars for given expectations."""
    values = table.expectations.reshape(-1, len(table.lags), len(table.lags))
    spread = values.std(dim=0, correction=min(1, len(values) - 1))
    return ExpectationBars(
        num_states,
        len(values),
        table.lags,
        values.mean(dim=0),
        spread,
        margins_of(table),
        table.error,
    )


FEW, MORE_STATES = ClaimConfig(matrices=10), ClaimConfig(num_states=25, matrices=10)
EXPERIMENT = Experiment("claim_expectations", FEW, ExpectationBars, compute)
EXPERIMENT_25 = Experiment("claim_expectations_25", MORE_STATES, ExpectationBars, compute)
