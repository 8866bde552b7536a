r"""The seam between tasks and all that is computed from them: which token each token follows, its parent.

A task has several hypotheses about that, and one of them is drawn for each sequence from a prior. Under it token i has
law $P_{s_j,\,\cdot}$ with j its parent, or the stationary law $\pi$ if it has none. The paper's hypotheses are the lags
(`lags.py`). Sampling, evidence and predictors read nothing else of a task, so that another one is a class with the
members of `MatrixTask`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class CausalTask(Protocol):
    """Says which token each token follows, under each of several hypotheses.

    `length` is the number of tokens of a sequence, `prior` the probability of each hypothesis. `hypotheses` are their
    labels, as in `Batch.lags`: the lags, or 0, 1, ...
    """

    @property
    def length(self) -> int: ...

    @property
    def hypotheses(self) -> tuple[int, ...]: ...

    @property
    def prior(self) -> Float[Tensor, " hypothesis"]: ...

    def parents(self, time: int) -> Int[Tensor, "hypothesis time"]:
        """Give the positions of the first `time` tokens' parents, each before its own, and -1 for a token without one.

        Predicting the token after a whole sequence needs `time` = `length` + 1.
        """
        ...


@runtime_checkable
class MatrixTask(CausalTask, Protocol):
    """Has one transition matrix that all tokens follow, from their parents or from its stationary law."""

    @property
    def P(self) -> Float[Tensor, "state state"]: ...  # noqa: N802 (the paper's name)

    @property
    def stationary(self) -> Float[Tensor, " state"]: ...


@dataclass(frozen=True, eq=False)
class Batch:
    """Holds sequences, and of each the hypothesis that made it: the lag's value, not its index."""

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, " batch"]


def counted(parents: Int[Tensor, "hypothesis time"]) -> Bool[Tensor, " time"]:
    """Tell which tokens say something of the hypotheses: those that have a parent under one of them at least."""
    return (parents >= 0).any(dim=0)


def as_slice(positions: Int[Tensor, " n"]) -> slice | Int[Tensor, " n"]:
    """Give consecutive positions as a slice, which indexes without a copy: this makes lags fast.

    >>> as_slice(torch.tensor([4, 5, 6])), as_slice(torch.tensor([4, 6]))
    (slice(4, 7, None), tensor([4, 6]))
    """
    first = int(positions[0]) if len(positions) else 0
    if torch.equal(positions, torch.arange(first, first + len(positions))):
        return slice(first, first + len(positions))
    return positions
