"""How near two attention-only layers with relative positions can come to Bayes: bounds from below.

The proof is in docs/proofs/two_layers.md: on sequences of n slots, each with one of two words,
the last row of two layers is a rational function of the number of second words, of the degree
of the number of second-layer heads. Bayes is a logistic function of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import TokenTensor
from sih.beyond.relative_positions.equioscillation import least_error
from sih.predictors.predictors import bma
from sih.results.experiment import Experiment, Seeded
from sih.task import Task
from sih.task.matrices import random_transition_matrix


@dataclass(frozen=True)
class TwoLayersConfig(Seeded):
    """Slots, evidence and heads; and sequences of one task, its matrix drawn from the seed."""

    slots: tuple[int, ...] = (8, 16, 32, 64, 128)
    evidence: tuple[float, ...] = (1.0, 4.0)
    """By how much a slot moves the log-odds of two lags."""
    shift: float = 0.3
    """How far from the middle the log-odds are 0, in slots."""
    heads: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    """In the second layer."""
    lags: tuple[int, ...] = (1, 2, 3)
    num_states: int = 5
    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    least_shown: float = 1e-6
    """More heads are not tried where the error is smaller."""

    @property
    def reach(self) -> int:
        """The least reach with which three layers compute Prop. 1."""
        return max(self.lags) + 1


@dataclass(frozen=True)
class Bound:
    """No two layers with this many second-layer heads have smaller errors; some function has `upper`."""

    heads: int
    slots: int
    lower: float
    upper: float
    evidence: float = 0.0
    """Per slot, where the logistic function itself is approximated."""
    length: int = 0
    """Of the sequences, where the probability of a token is."""


@dataclass(frozen=True)
class TwoLayers:
    """Holds bounds on a posterior weight by slots and evidence, and on a probability by length."""

    config: TwoLayersConfig
    weights: tuple[Bound, ...]
    probabilities: tuple[Bound, ...]
    states: tuple[int, int]
    """The letters a and b of the sequences."""
    token: int
    """The one whose probability is bounded."""


def compute(config: TwoLayersConfig, store: object) -> TwoLayers:
    """Approximate the logistic function, and Bayes on the sequences of the proof."""
    weights = [
        Bound(heads, slots, lower, upper, evidence=step)
        for step in config.evidence
        for slots in config.slots
        for heads, lower, upper in _bounds(logistic(slots, step, config.shift), config)
    ]
    P = random_transition_matrix(config.num_states, rng=config.rng(), law="uniform")
    a, b, token = letters(P)
    probabilities = []
    for length in config.lengths:
        task = Task(P, config.lags, length)
        tokens = family(task, a, b, config.reach)
        law = bma(tokens, task)[:, -1, token]
        found = _bounds(law, config)
        probabilities += [
            Bound(heads, len(law) - 1, lower, upper, length=length) for heads, lower, upper in found
        ]
    return TwoLayers(config, tuple(weights), tuple(probabilities), (a, b), token)


def _bounds(values: Float[Tensor, " s"], config: TwoLayersConfig) -> list[tuple[int, float, float]]:
    """Return, for each number of heads that has enough points, the error from below and above."""
    found: list[tuple[int, float, float]] = []
    for heads in config.heads:
        if 2 * heads + 2 > len(values) or (found and found[-1][1] < config.least_shown):
            break
        best = least_error(values, heads)
        found.append((heads, best.level, best.largest))
    return found


def logistic(slots: int, step: float, shift: float) -> Float[Tensor, " s"]:
    """Return the weight of a lag by the number of words that speak for it.

    >>> logistic(4, 1.0, 0.0)[2].item()
    0.5
    """
    s = torch.arange(slots + 1, dtype=torch.float64)
    return torch.sigmoid(step * (s - slots / 2 - shift))


def letters(P: Float[Tensor, "state state"]) -> tuple[int, int, int]:
    r"""Return states a and b, and a token whose probability differs most after a and after b.

    $\chi = \log P_{aa} P_{bb} / (P_{ab} P_{ba})$ is what a pair of letters b at the distance of
    a lag adds to its evidence. The product of $\chi$ and the difference is largest.
    """
    same = P.diagonal().log()
    chi = same[:, None] + same - P.log() - P.mT.log()
    difference = (P[:, None] - P).abs()
    a, b = divmod(int((chi * difference.amax(dim=-1)).argmax()), len(P))
    return a, b, int(difference[a, b].argmax())


def family(task: Task, a: int, b: int, reach: int) -> TokenTensor:
    """Return one sequence for each number of second words, as many slots as the length has.

    Both words have two letters b among letters a: the first at the distance of the second lag,
    the second at that of the first lag. Between two words there are letters a as far as the reach
    and the largest lag, and at the end b is the candidate of the first lag.
    """
    k, other, last = task.lags[0], task.lags[1], max(task.lags)
    gap = [a] * max(reach, last)
    word = {
        lag: [b if n in (0, lag) else a for n in range(max(k, other) + 1)] for lag in (k, other)
    }
    end = [*gap]
    end[-k] = b
    slots = (task.length - last - len(end)) // len(word[k] + gap)
    rows = []
    for second in range(slots + 1):
        spoken = [k] * second + [other] * (slots - second)
        row = [token for lag in spoken for token in word[lag] + gap] + end
        rows.append([a] * (task.length - len(row)) + row)
    return torch.tensor(rows)


EXPERIMENT = Experiment("two_layers", TwoLayersConfig(), TwoLayers, compute, beyond=True)
