"""Lower bounds on the error of two attention-only layers with relative positions
against Bayes.

The proof is in docs/proofs/two_layers.md: on sequences of n slots, each with one of two
words, the last row of two layers is a rational function of the number of second words.
Its degree is the number of second-layer heads. Bayes is a logistic function of it.
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
    """Slots, evidence and heads, with the sequences of one task."""

    slots: tuple[int, ...] = (8, 16, 32, 64, 128)
    evidence: tuple[float, ...] = (1.0, 4.0)
    """Change of two lags' log-odds by one slot."""
    shift: float = 0.3
    """Distance of log-odds 0 from the middle, in slots."""
    heads: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    """Numbers of second-layer heads."""
    lags: tuple[int, ...] = (1, 2, 3)
    num_states: int = 5
    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    least_shown: float = 1e-6
    """More heads are not tried below this error."""

    @property
    def reach(self) -> int:
        """Return the least reach with which three layers compute Prop. 1."""
        return max(self.lags) + 1


@dataclass(frozen=True)
class Bound:
    """Lower bound on the error of any two layers with this many second-layer heads;
    some function reaches `upper`.
    """

    heads: int
    slots: int
    lower: float
    upper: float
    evidence: float = 0.0
    """Evidence per slot, where the logistic function itself is approximated."""
    length: int = 0
    """Length of the sequences, where the probability of a token is approximated."""


@dataclass(frozen=True)
class TwoLayers:
    """Bounds on a posterior weight by slots and evidence, and on a probability by
    length.
    """

    config: TwoLayersConfig
    weights: tuple[Bound, ...]
    probabilities: tuple[Bound, ...]
    states: tuple[int, int]
    """The letters a and b of the sequences."""
    token: int
    """The token whose probability is bounded."""


def compute(config: TwoLayersConfig, store: object) -> TwoLayers:
    """Return the bounds for the logistic function, and for Bayes on the sequences of
    the proof.
    """
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
    """Return the error from below and above, for each number of heads with enough
    points.
    """
    found: list[tuple[int, float, float]] = []
    for heads in config.heads:
        if 2 * heads + 2 > len(values) or (found and found[-1][1] < config.least_shown):
            break
        best = least_error(values, heads)
        found.append((heads, best.level, best.largest))
    return found


def logistic(slots: int, step: float, shift: float) -> Float[Tensor, " s"]:
    """Return the weight of a lag by the number of words in its favour.

    >>> logistic(4, 1.0, 0.0)[2].item()
    0.5
    """
    s = torch.arange(slots + 1, dtype=torch.float64)
    return torch.sigmoid(step * (s - slots / 2 - shift))


def letters(P: Float[Tensor, "state state"]) -> tuple[int, int, int]:
    r"""Return states a and b, and the token that best distinguishes them as predecessor.

    $\chi = \log P_{aa} P_{bb} / (P_{ab} P_{ba})$ is the contribution of a pair of
    letters b at the distance of a lag to its evidence. The product of $\chi$ and the
    difference is largest.
    """
    same = P.diagonal().log()
    chi = same[:, None] + same - P.log() - P.mT.log()
    difference = (P[:, None] - P).abs()
    a, b = divmod(int((chi * difference.amax(dim=-1)).argmax()), len(P))
    return a, b, int(difference[a, b].argmax())


def family(task: Task, a: int, b: int, reach: int) -> TokenTensor:
    """Return one sequence for each number of second words, with as many slots as the
    length allows.

    Both words have two letters b among letters a: the first at the distance of the
    second lag, the second at that of the first lag. Between two words there are as many
    letters a as the reach and the largest lag require, and at the end b is the
    candidate of the first lag.
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
