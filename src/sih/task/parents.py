r"""The seam between tasks and all that is computed from them: which token each token follows, its parent.

A task has several hypotheses about that, and one of them is drawn for each sequence from a prior. Under it token i has
law $P_{s_j,\,\cdot}$ with j its parent, or the stationary law $\pi$ if it has none. The paper's hypotheses are the lags
(`lags.py`). Sampling, evidence and predictors read nothing else of a task, so that another one is a class with the
members of `MatrixTask`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.checks import check_kind


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


class Sequence(NamedTuple):
    """Holds one sequence of a batch. torch's DataLoader makes batches of them with the same names."""

    tokens: Int[Tensor, " time"]
    lags: Int[Tensor, ""]


@dataclass(frozen=True, eq=False)
class Batch:
    """Holds sequences, and of each the hypothesis that made it: the lag's value, not its index.

    `batch[3]` and a loop give single sequences, `batch[:8]` (a slice, a mask, a list or tensor of indices) a batch.
    """

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, " batch"]

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Sequence]:
        return map(Sequence, self.tokens, self.lags)

    @overload
    def __getitem__(self, index: int) -> Sequence: ...
    @overload
    def __getitem__(self, index: slice | Tensor | list[int] | list[bool]) -> "Batch": ...
    def __getitem__(self, index: Any) -> "Sequence | Batch":
        tokens, lags = self.tokens[index], self.lags[index]
        return Batch(tokens, lags) if tokens.ndim > 1 else Sequence(tokens, lags)

    def to(self, device: torch.device | str) -> "Batch":
        """Give the same batch on another device."""
        return Batch(self.tokens.to(device), self.lags.to(device))


def check_task(task: object, kind: type = CausalTask) -> None:
    """Raise a FieldError unless it is a task, of this kind."""
    check_kind("task", task, kind, "a task, e.g. sih.Task(P, lags=(1, 2, 3), length=128)")


def check_batch(batch: object) -> None:
    """Raise a FieldError unless it is a batch."""
    check_kind("batch", batch, Batch, "a Batch, e.g. sih.sample(task, size=8, rng=0)")


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
