"""How transitions that mix in a head come apart again: read by a parabola for two lags, with waves for more."""

from dataclasses import dataclass

import torch

from sih.construction.heads.mixing import mixing_profile, parabola_and_waves
from sih.results.experiment import Experiment
from sih.runs.run_store import RunStore

CAPTION = (
    "Why lags may mix in a head. Left: two lags, one head with uniform attention. A transition at offset o leaves its "
    "evidence q for lag 1 at place o + 1 and -q for lag 2 at place o + 2 (above: two transitions). The keys of the two "
    "lags read all places by the same parabola, a place apart (below). Middle: what a transition with q = 1/2 then "
    "adds to the two scores. It grows with the transition's age, but for both alike, which softmax does not see; the "
    "gap is the evidence, counted once at every age. Right: for five lags waves are added to the parabola. On the "
    "differences of two lags (grey) the sum is 1 at x = 0 and 0 elsewhere, up to a constant. All of it is the closed "
    "form; nothing is random."
)


@dataclass(frozen=True)
class CancellationConfig:
    offsets: tuple[int, ...] = (2, 7)
    """Of the transitions that are shown in the head."""
    evidence: tuple[float, ...] = (1.0, -0.6)
    """Theirs for lag 1, and the opposite for lag 2."""
    oldest: int = 10
    """The largest offset that is shown."""
    count: int = 5
    """Lags for which parabola and waves are added up."""


@dataclass(frozen=True)
class Cancellation:
    """Holds what a head that mixes two lags stores, how it is read, what comes of it; and the sum for more lags."""

    config: CancellationConfig
    stored: list[list[float]]
    """By transition and place n = 1, 2, ..: n tokens back."""
    reads: list[list[float]]
    """By lag and place: what the key of the lag reads it by."""
    added: list[list[float]]
    """By lag and offset: what a transition with evidence (1/2, -1/2) adds to the score of the lag."""
    differences: list[int]
    """x, up to one further than two lags are apart."""
    parabola: list[float]
    waves: list[float]


def compute(config: CancellationConfig, store: RunStore) -> Cancellation:
    """Take all from the closed form."""
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
        stored.tolist(),
        reads.tolist(),
        added.tolist(),
        x.int().tolist(),
        (-c * x**2).tolist(),
        waves.tolist(),
    )


EXPERIMENT = Experiment(
    "cancellation", CAPTION, CancellationConfig(), Cancellation, compute, beyond=True
)
