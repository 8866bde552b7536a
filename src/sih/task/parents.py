r"""The seam between tasks and all that is computed from them: which token each token follows, its parent.

A task has several hypotheses about that, and one of them is drawn for each sequence from a prior. Under it token i has
law $P_{s_j,\,\cdot}$ with j its parent, or the stationary law $\pi$ if it has none. The paper's hypotheses are the lags
(`lags.py`). Sampling, evidence and predictors read nothing else of a task, so that another one is a class with the
members of `MatrixTask`.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, overload, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.checks import check_kind
from sih.showing import Shown, coloured_cells, heat_map


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


class ShownTask(Shown):
    """Gives a task its repr and its picture, from the members that all tasks have."""

    def _facts(self) -> Mapping[str, Any]:
        task: Any = self
        fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
        facts = {name: value for name, value in fields.items() if not isinstance(value, Tensor)}
        labels = {} if "lags" in facts else {"hypotheses": len(task.hypotheses)}
        usual = bool((task.prior == task.prior[0]).all())
        return {"num_states": task.num_states, **labels, **facts, **({} if usual else {"prior": task.prior.tolist()})}

    def _pictures(self) -> Iterator[str]:
        if isinstance(self, MatrixTask):
            yield heat_map(self.P, "P, from row to column")
            yield heat_map(self.stationary[None], "stationary law")
        task: Any = self
        if not hasattr(task, "lags"):
            rows = [[(str(parent), parent) for parent in row] for row in task.parents(min(task.length, 24)).tolist()]
            yield coloured_cells(rows[:8], "parents of the first tokens", [f"hypothesis {h}" for h in task.hypotheses])


class Sequence(NamedTuple):
    """Holds one sequence of a batch. torch's DataLoader makes batches of them with the same names."""

    tokens: Int[Tensor, " time"]
    lags: Int[Tensor, ""]


@dataclass(frozen=True, eq=False)
class Batch(Shown):
    """Holds sequences, and of each the hypothesis that made it: the lag's value, not its index.

    `batch[3]` and a loop give single sequences, `batch[:8]` (a slice, a mask, a list or tensor of indices) a batch.
    `batch.plot()` draws them.

    Args:
        tokens: (batch, time), whole numbers.
        lags: (batch,), the lag of each sequence.

    >>> import sih
    >>> batch = sih.sample(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16), size=8, rng=0)
    >>> batch
    Batch(size=8, length=16, lags={1: 3, 2: 5})
    >>> batch[batch.lags == 1]
    Batch(size=3, length=16, lags={1: 3})
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

    def _facts(self) -> Mapping[str, Any]:
        found, counts = self.lags.unique(return_counts=True)
        lags = dict(zip(found.tolist(), counts.tolist(), strict=True))
        return {"size": len(self), "length": self.tokens.shape[1], "lags": lags}

    def _pictures(self) -> Iterator[str]:
        tokens = self.tokens[:8, :32].tolist()
        rows = [[(str(state), state) for state in row] for row in tokens]
        labels = [f"lag {lag}" for lag in self.lags[:8].tolist()]
        whole = self.tokens.shape == (len(rows), len(rows[0]) if rows else 0)
        yield coloured_cells(rows, "" if whole else "the first sequences, as far as they fit", labels)

    def to(self, device: torch.device | str) -> "Batch":
        """Give the same batch on another device.

        >>> import sih
        >>> sih.Batch(torch.zeros(2, 4, dtype=torch.int64), torch.tensor([1, 2])).to("cpu")
        Batch(size=2, length=4, lags={1: 1, 2: 1})
        """
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
