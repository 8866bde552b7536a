"""The paper's task: interleaved Markov chains with a lag drawn for each sequence.

Paper: Sec. 4 and Algorithm 1. The paper counts positions from 1, the code from 0: token
i of the code is X_{i+1} of the paper. The first `max_lag` tokens, 0 .. max_lag - 1, are
drawn from the stationary distribution, whatever the lag.
"""

import dataclasses
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, described
from sih.task.matrices import MatrixLike, as_transition_matrix
from sih.task.parents import KnownMatrix, OneHypothesis, ShownTask

ROUNDING = 1e-12
"""Largest difference between probabilities of equal tasks. Rows are divided by their
sums each time a matrix is given, which rounds them."""


L = TypeVar("L", bound="Lagged")


class Lagged(ShownTask):
    """A task with lags as hypotheses: under lag k, token i follows token i - k."""

    lags: tuple[int, ...]
    length: int
    lag_prior: Float[Tensor, " lag"]

    @property
    def max_lag(self) -> int:
        """Return the largest lag. Tokens 0 .. max_lag - 1 have no parent."""
        return self.lags[-1]

    @property
    def min_lag(self) -> int:
        """Return the smallest lag."""
        return self.lags[0]

    @property
    def hypotheses(self) -> tuple[int, ...]:
        """Return the lags, which are the labels of the hypotheses."""
        return self.lags

    @property
    def prior(self) -> Float[Tensor, " lag"]:
        """Return the probability of each lag, `lag_prior`."""
        return self.lag_prior

    def parents(self, time: int) -> Int[Tensor, "lag time"]:
        """Return the parent's position of the first `time` tokens under each lag.

        It is -1 for the first max_lag tokens.

        >>> Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 3), length=8).parents(6)
        tensor([[-1, -1, -1,  2,  3,  4],
                [-1, -1, -1,  0,  1,  2]])
        """
        position = torch.arange(time)
        return torch.where(
            position >= self.max_lag, position - torch.tensor(self.lags)[:, None], -1
        )

    def fields(self) -> dict[str, Any]:
        """Return the constructor's arguments, by name.

        >>> list(Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 3), length=8).fields())
        ['P', 'lags', 'length', 'lag_prior']
        """
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]

    def with_length(self: L, length: int) -> L:
        """Return the task with the same chains and another length.

        >>> Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16).with_length(64)
        Task(num_states=2, lags=(1, 2), length=64)
        """
        return type(self)(**{**self.fields(), "length": length})

    def same_chains(self, other: "Lagged") -> bool:
        """Return whether the other task differs at most in its length.

        Probabilities may differ by rounding.

        >>> task = Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16)
        >>> task.same_chains(task.with_length(64))
        True
        """
        if type(other) is not type(self):
            return False
        pairs = [
            (value, other.fields()[name])
            for name, value in self.fields().items()
            if name != "length"
        ]
        return all(_alike(a, b) if isinstance(a, Tensor) else a == b for a, b in pairs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lagged) and self.same_chains(other) and self.length == other.length

    def __hash__(self) -> int:
        return hash((type(self), self.lags, self.length))

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers: `Task(**task.to_dict())` equals the task.

        >>> Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16).to_dict()
        {'P': [[0.9, 0.1], [0.5, 0.5]], 'lags': [1, 2], 'length': 16, 'lag_prior': [0.5, 0.5]}
        """
        return {name: _plain(value) for name, value in self.fields().items()}


@dataclass(frozen=True, eq=False)
class Task(Lagged, KnownMatrix, OneHypothesis):
    r"""The paper's task: a sequence has a lag k, and token i follows token i - k.

    Its probability is $P_{s_{i-k},\,s_i}$. Equal tasks compare equal, also after one
    was written to a file and read again. `task.plot()` draws the task.

    Args:
        P: (state, state), the transition matrix: a tensor, an array or nested lists.
            `P[i, j]` is the probability of j after i.
        lags: the lags that a sequence may have, increasing.
        length: tokens in a sequence, more than the largest lag.
        lag_prior: (lag,), the probability of each lag. By default all are equally
            likely.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=128)
    >>> task
    Task(num_states=2, lags=(1, 2, 3), length=128)
    >>> task.stationary
    tensor([0.8333, 0.1667], dtype=torch.float64)
    """

    P: Float[Tensor, "state state"]
    lags: tuple[int, ...]
    length: int
    lag_prior: Float[Tensor, " lag"]

    def __init__(
        self,
        P: MatrixLike,
        lags: Sequence[SupportsIndex],
        length: SupportsIndex,
        lag_prior: Tensor | np.ndarray | Sequence[float] | None = None,
    ) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        assign(self, "P", as_transition_matrix(P))
        assign(self, "lags", check_lags(lags))
        assign(self, "length", check_length(length, self.lags))
        assign(self, "lag_prior", check_prior(lag_prior, len(self.lags)))


def check_lags(lags: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """Return the lags as a tuple of distinct, positive, increasing integers.

    Raises a ValueError if they are not.
    """
    try:
        numbers = lags.tolist() if isinstance(lags, Tensor) else tuple(lags)
        of_others = isinstance(lags, bytes | Iterator) or any(
            isinstance(lag, bool) for lag in numbers
        )
        given = () if of_others else tuple(map(operator.index, numbers))
    except TypeError:
        given = ()
    if not given or sorted(set(given)) != list(given) or given[0] < 1:
        raise FieldError(
            "lags",
            f"lags must be distinct, positive and increasing whole numbers, e.g. (1, 2, 3); got {lags!r}",
        )
    return given


def check_length(length: SupportsIndex, lags: tuple[int, ...]) -> int:
    """Return the length as an int above the largest lag, or raise a FieldError."""
    try:
        if operator.index(length) > lags[-1]:
            return operator.index(length)
    except TypeError:
        pass
    raise FieldError(
        "length", f"length must be a whole number above the largest lag, {lags[-1]}; got {length!r}"
    )


def check_prior(
    prior: Tensor | np.ndarray | Sequence[float] | None,
    count: int,
    name: str = "lag_prior",
    of: str = "lags",
) -> Float[Tensor, " hypothesis"]:
    """Return the prior probabilities of the hypotheses, or raise a FieldError.

    None gives a uniform prior.
    """
    if prior is None:
        return torch.full((count,), 1 / count, dtype=torch.float64)
    try:
        law = torch.as_tensor(prior, dtype=torch.float64).detach()
    except (TypeError, ValueError, RuntimeError):
        law = torch.empty(0)
    of_booleans = torch.as_tensor(prior).dtype == torch.bool if law.numel() else False
    if (
        of_booleans
        or law.shape != (count,)
        or not (law > 0).all()
        or abs(law.sum().item() - 1) > 1e-6
    ):
        raise FieldError(
            name,
            f"{name} is one positive probability for each of the {count} {of}, summing to 1 "
            f"(leave out one that never occurs); got {described(prior)}",
        )
    return law / law.sum()


def _alike(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool((a - b).abs().max() < ROUNDING)


def _plain(value: Any) -> Any:
    return (
        value.tolist()
        if isinstance(value, Tensor)
        else list(value)
        if isinstance(value, tuple)
        else value
    )
