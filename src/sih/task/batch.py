"""Batches of sequences, with the hidden variables that were drawn for them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import check_fields, check_kind
from sih.base.showing import Drawn


class Sequence(NamedTuple):
    """One sequence of a batch, which torch's DataLoader collates by these names."""

    tokens: Int[Tensor, " time"]
    lags: Int[Tensor, "*time"]


class SequenceWithMatrix(NamedTuple):
    """One sequence of a batch in which each sequence has its own matrix."""

    tokens: Int[Tensor, " time"]
    lags: Int[Tensor, "*time"]
    P: Float[Tensor, "state state"]


@dataclass(frozen=True, eq=False)
class Batch(Drawn):
    """A batch of sequences, each with the hypothesis that generated it.

    A hypothesis is given by its label, which in a task with lags is the lag itself.
    Where the lag switches within a sequence, `lags` has the lag of each token, and 0
    for the first max_lag tokens, which have no parent. Where the matrix is drawn anew
    for each sequence, `P` has these matrices. Otherwise it is None.

    `batch[3]` and a loop give single sequences: a `Sequence`, or a
    `SequenceWithMatrix`. `batch[:8]` gives a batch, and so does a mask, a list or a
    tensor of indices. `batch.plot()` draws the sequences.

    Args:
        tokens: (batch, time), whole numbers.
        lags: (batch,), the lag of each sequence, or (batch, time), the lag of each
            token.
        P: (batch, state, state), the matrix of each sequence, or None.

    >>> import sih
    >>> batch = sih.sample(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16), size=8, rng=0)
    >>> batch
    Batch(size=8, length=16, lags={1: 3, 2: 5})
    >>> batch[batch.lags == 1]
    Batch(size=3, length=16, lags={1: 3})
    """

    drawing = "sih.results.plots.batch:draw_batch"

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, "batch *time"]
    P: Float[Tensor, "batch state state"] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Any]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Tensor | list[int] | list[bool]) -> "Batch": ...
    def __getitem__(self, index: Any) -> Any:
        tokens, lags, P = (
            self.tokens[index],
            self.lags[index],
            None if self.P is None else self.P[index],
        )
        if tokens.ndim > 1:
            return Batch(tokens, lags, P)
        return Sequence(tokens, lags) if P is None else SequenceWithMatrix(tokens, lags, P)

    def _facts(self) -> Mapping[str, Any]:
        found, counts = self.lags.unique(return_counts=True)
        lags = dict(zip(found.tolist(), counts.tolist(), strict=True))
        return {"size": len(self), "length": self.tokens.shape[1], "lags": lags}

    def to(self, device: torch.device | str) -> "Batch":
        """Return the same batch on another device.

        >>> import sih
        >>> sih.Batch(torch.zeros(2, 4, dtype=torch.int64), torch.tensor([1, 2])).to("cpu")
        Batch(size=2, length=4, lags={1: 1, 2: 1})
        """
        P = None if self.P is None else self.P.to(device)
        return Batch(self.tokens.to(device), self.lags.to(device), P)


def check_batch(batch: object) -> None:
    """Raise a FieldError unless the object is a batch."""
    check_kind("batch", batch, Batch, "a Batch, e.g. sih.sample(task, size=8, rng=0)")
