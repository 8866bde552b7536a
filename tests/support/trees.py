"""A task whose parents are not lags, and what it means by enumeration, in plain loops that share no code with `sih`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sih.task.parents import KnownMatrix, OneHypothesis


@dataclass(frozen=True)
class TreeTask(KnownMatrix, OneHypothesis):
    """Two fixed trees or more over the positions: `table[h][i]` is the parent of token i in tree h, -1 for a root."""

    P: Tensor
    table: tuple[tuple[int, ...], ...]
    prior: Tensor

    @property
    def length(self) -> int:
        return len(self.table[0]) - 1  # the last column is for the token after the sequence

    @property
    def hypotheses(self) -> tuple[int, ...]:
        return tuple(range(len(self.table)))

    def parents(self, time: int) -> Tensor:
        return torch.tensor(self.table)[:, :time]


def likelihood(
    tokens: list[int], P: list[list[float]], pi: list[float], tree: tuple[int, ...]
) -> Fraction:
    """The probability of the tokens in one tree, exactly: a root has law pi, any other token its parent's row."""
    result = Fraction(1)
    for i, token in enumerate(tokens):
        result *= Fraction(pi[token]) if tree[i] < 0 else Fraction(P[tokens[tree[i]]][token])
    return result


def bma(tokens: list[int], task: TreeTask) -> list[float]:
    """P(tokens + [s]) / P(tokens), summed over the trees."""
    P, pi = task.P.tolist(), task.stationary.tolist()
    pairs = list(zip(task.prior.tolist(), task.table, strict=True))
    now = sum(Fraction(p) * likelihood(tokens, P, pi, tree) for p, tree in pairs)
    then = [
        sum(Fraction(p) * likelihood([*tokens, s], P, pi, tree) for p, tree in pairs)
        for s in range(len(P))
    ]
    return [float(value / now) for value in then]
