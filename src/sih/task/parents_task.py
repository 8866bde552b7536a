"""A task with any parents: a table of each token's parent under each hypothesis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_kind, check_sizes, described, generator
from sih.base.types import Seed
from sih.task.lags import check_prior
from sih.task.matrices import MatrixLike, as_transition_matrix
from sih.task.parents import KnownMatrix, OneHypothesis, ShownTask

TableLike = Tensor | np.ndarray | Sequence[Sequence[int]]


@dataclass(frozen=True, eq=False)
class ParentsTask(KnownMatrix, OneHypothesis, ShownTask):
    """A task with a transition matrix and a table of parents, one row per hypothesis.

    `table[h, i]` is the parent of token i under hypothesis h, a position before i. It
    is -1 for a token without a parent, which is drawn from the stationary distribution.
    The last column is for the token after the sequence. A table of `length` columns
    leaves it out: that token then has no parent.

    Args:
        P: (state, state), the transition matrix.
        parents: (hypothesis, length + 1) or (hypothesis, length), the table.
        length: tokens in a sequence. Default: the number of columns.
        prior: (hypothesis,), the probability of each hypothesis. By default all are
            equally likely.

    >>> task = ParentsTask([[0.9, 0.1], [0.5, 0.5]], parents=[[-1, 0, 1, 2], [-1, 0, 0, 1]], length=3)
    >>> task.hypotheses, task.parents(4)[1].tolist()
    ((0, 1), [-1, 0, 0, 1])
    """

    P: Float[Tensor, "state state"]
    table: Int[Tensor, "hypothesis next"]
    """The parents of tokens 0 to `length`, one more than a sequence has."""
    length: int
    prior: Float[Tensor, " hypothesis"]

    def __init__(
        self,
        P: MatrixLike,
        parents: TableLike,
        length: int | None = None,
        prior: Tensor | np.ndarray | Sequence[float] | None = None,
    ) -> None:
        table = check_parents(parents)
        length = table.shape[1] if length is None else length
        check_sizes(length=length)
        if not length <= table.shape[1]:
            needs = f"the parents of {length} tokens, and of the one after them if it is to be predicted"
            raise FieldError(
                "length", f"length {length} needs {needs}; the table has {table.shape[1]} columns"
            )
        assign = object.__setattr__  # the dataclass is frozen
        assign(self, "P", as_transition_matrix(P))
        assign(self, "table", torch.nn.functional.pad(table, (0, 1), value=-1)[:, : length + 1])
        assign(self, "length", length)
        assign(self, "prior", check_prior(prior, len(table), "prior", "hypotheses"))

    @property
    def hypotheses(self) -> tuple[int, ...]:
        """Return 0, 1, ..., one number per row of the table."""
        return tuple(range(len(self.table)))

    def parents(self, time: int) -> Int[Tensor, "hypothesis time"]:
        """Return the parents of the first `time` tokens under each hypothesis."""
        if time > self.length + 1:
            raise FieldError(
                "tokens",
                f"tokens must be at most {self.length} long, the length of the task; got {time - 1}",
            )
        return self.table[:, :time]

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers: `ParentsTask(**task.to_dict())` is equal.

        >>> ParentsTask([[0.9, 0.1], [0.5, 0.5]], parents=[[-1, 0]]).to_dict()["parents"]
        [[-1, 0, -1]]
        """
        lists = {"P": self.P.tolist(), "parents": self.table.tolist(), "prior": self.prior.tolist()}
        return {**lists, "length": self.length}


def check_parents(table: TableLike) -> Int[Tensor, "hypothesis time"]:
    """Return a table of parents as int64, or raise a FieldError.

    Every parent must come before its child.
    """
    wanted = "a row for each hypothesis, of the position of each token's parent or -1, e.g. [[-1, 0, 1], [-1, 0, 0]]"
    try:
        parents = torch.as_tensor(table)
    except (TypeError, ValueError, RuntimeError):
        parents = torch.empty(0)
    if (
        parents.ndim != 2
        or not parents.numel()
        or parents.is_floating_point()
        or parents.dtype == torch.bool
    ):
        raise FieldError("parents", f"parents is {wanted}; got {described(table)}")
    wrong = ((parents < -1) | (parents >= torch.arange(parents.shape[1]))).nonzero()
    if len(wrong):
        h, i = wrong[0].tolist()
        says = f"hypothesis {h} gives token {i} the parent {int(parents[h, i])}"
        raise FieldError("parents", f"a parent comes before its child, or is -1 for none; {says}")
    return parents.long()


def random_parents(
    hypotheses: int, length: int, *, rng: Seed, distinct: bool = True, reach: int | None = None
) -> Int[Tensor, "hypothesis next"]:
    """Return a random table of parents, uniform among the positions before each token.

    Args:
        hypotheses: rows of the table.
        length: tokens in a sequence. The table has one column more.
        rng: a generator, or a seed.
        distinct: if True, a token has a different parent under every hypothesis, so the
            first `hypotheses` tokens have none. If False, each hypothesis is a random
            tree that grows from token 0, as in Nichani et al.
        reach: the largest distance to a parent. By default it is unlimited.

    Returns:
        The table, (hypothesis, length + 1), with -1 for a token without a parent.

    >>> random_parents(2, 5, rng=0, distinct=False)
    tensor([[-1,  0,  1,  0,  1,  1],
            [-1,  0,  0,  2,  2,  4]])
    """
    check_sizes(hypotheses=hypotheses, length=length)
    reach = length if reach is None else reach
    check_sizes(reach=reach)
    check_kind("distinct", distinct, bool, "True or False")
    if distinct and not hypotheses <= min(reach, length):
        said = f"reach {reach} and length {length} allow fewer; use distinct=False, or larger ones"
        raise FieldError(
            "hypotheses", f"{hypotheses} hypotheses need as many parents to choose from; {said}"
        )
    child = torch.arange(length + 1)
    choices = child.clamp_max(
        reach
    )  # the number of tokens just before a child that may be its parent
    rng = generator(rng)
    if distinct:
        order = torch.rand(
            (length + 1, reach), generator=rng, dtype=torch.float64, device=rng.device
        ).cpu()
        back = (
            order.masked_fill(torch.arange(reach) >= choices[:, None], 2.0)
            .argsort(dim=1)[:, :hypotheses]
            .T
        )
    else:
        uniform = torch.rand(
            (hypotheses, length + 1), generator=rng, dtype=torch.float64, device=rng.device
        ).cpu()
        back = (uniform * choices).long()
    return torch.where(child >= (hypotheses if distinct else 1), child - 1 - back, -1)
