"""Separation of transitions that share a mixing head: read by a parabola for two lags,
with waves for more.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.heads.mixing import mixing_profile, parabola_and_waves
from sih.results.experiment import Experiment


@dataclass(frozen=True)
class CancellationConfig:
    offsets: tuple[int, ...] = (2, 7)
    """Offsets of the transitions that are shown in the head."""
    evidence: tuple[float, ...] = (1.0, -0.6)
    """Their evidence for lag 1; it is the opposite for lag 2."""
    oldest: int = 10
    """The largest offset that is shown."""
    count: int = 5
    """Numbers of lags for which parabola and waves are added up."""


@dataclass(frozen=True, eq=False)
class Cancellation:
    """The values of a head that mixes two lags, its reads, and the result; and the sum
    for more lags.
    """

    config: CancellationConfig
    stored: Float[Tensor, "transition place"]
    """Stored values by transition and place n = 1, 2, ..: n tokens back."""
    reads: Float[Tensor, "lag place"]
    """Reads by lag and place: the factor with which the lag's key reads it."""
    added: Float[Tensor, "lag offset"]
    """Contribution by lag and offset: of a transition with evidence (1/2, -1/2) to the
    score of the lag."""
    differences: Int[Tensor, " x"]
    """Differences x, up to one more than the largest between two lags."""
    parabola: Float[Tensor, " x"]
    waves: Float[Tensor, " x"]


def compute(config: CancellationConfig, store: object) -> Cancellation:
    """Return everything from the closed form."""
    indices = config.oldest + 3
    profile = mixing_profile((1, 2), indices)
    stored = torch.zeros(len(config.offsets), indices - 1, dtype=torch.float64)
    for row, offset, q in zip(stored, config.offsets, config.evidence, strict=True):
        row[offset], row[offset + 1] = q, -q
    n = torch.arange(1, indices)
    reads = torch.stack([profile.query[0, n - lag + profile.span] for lag in profile.lags])
    added = (profile.matrices @ torch.tensor([0.5, -0.5], dtype=torch.float64)).T
    c, by_angle = parabola_and_waves(config.count)
    x = torch.arange(-config.count, config.count + 1, dtype=torch.float64)
    waves = sum(
        (r * torch.cos(theta * x) for theta, r in by_angle.items()),
        torch.zeros(len(x), dtype=torch.float64),
    )
    return Cancellation(
        config,
        stored,
        reads,
        added,
        x.int(),
        (-c * x**2),
        waves,
    )


EXPERIMENT = Experiment("cancellation", CancellationConfig(), Cancellation, compute, beyond=True)
