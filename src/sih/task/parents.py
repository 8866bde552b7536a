r"""The interface between tasks and everything that is computed from them.

A task has several hypotheses about each token's parent, the token that it follows.
Under a hypothesis token i has distribution $P_{s_j,\,\cdot}$ with j its parent, or an
initial distribution if it has none. Tasks differ in three ways:

- the parents: lags (`lags.py`) or any table (`parents_task.py`);
- the matrix: known (`KnownMatrix`, here) or drawn for each sequence (`fresh_task.py`);
- the hypothesis: one for a whole sequence (`OneHypothesis`, here) or switching
  (`switching.py`).

Sampling, evidence, predictors, metrics and `LagTracker` read the members of
`CausalTask` and nothing else.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, check_kind, described
from sih.base.showing import Drawn
from sih.task.batch import Batch
from sih.task.laws import KnownRows, Laws, RowLaws, RowMemory, first_with_parent, leaders, possible
from sih.task.matrices import stationary_distribution


@runtime_checkable
class CausalTask(Protocol):
    """A task: each token's parent and distribution, under each of several hypotheses.

    `length` is the number of tokens of a sequence, `prior` the probability of each
    hypothesis at the start. `hypotheses` are their labels, as in `Batch.lags`: the
    lags, or 0, 1, ... `initial` is the distribution of a token without a parent.
    """

    @property
    def length(self) -> int: ...

    @property
    def num_states(self) -> int: ...

    @property
    def hypotheses(self) -> tuple[int, ...]: ...

    @property
    def prior(self) -> Float[Tensor, " hypothesis"]: ...

    @property
    def initial(self) -> Float[Tensor, " state"]: ...

    def parents(self, time: int) -> Int[Tensor, "hypothesis time"]:
        """Return the positions of the first `time` tokens' parents, by hypothesis.

        A parent comes before its child. A token without a parent has -1. To predict the
        token after a whole sequence, `time` is `length` + 1.
        """
        ...

    # Where the matrix comes from.

    def draw_transitions(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Float[Tensor, "*batch state state"]:
        """Return a drawn matrix for each sequence, or one matrix for all.

        `first` is the index of the hypothesis that each sequence begins with.
        """
        ...

    def transitions(self, batch: Batch) -> Float[Tensor, "#batch state state"]:
        """Return the true matrix of each sequence, or one matrix for all."""
        ...

    def laws(self, tokens: Int[Tensor, "batch time"]) -> Laws:
        """Return the distributions of tokens and next tokens, by hypothesis."""
        ...

    def memory(self) -> RowMemory:
        """Return the same distributions for use with one token at a time."""
        ...

    # How long a hypothesis lasts.

    def draw_paths(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Int[Tensor, "batch *time"]:
        """Return the hypothesis (its index) of each token, given that of the first.

        It is -1 for a token without a parent. Where the hypothesis never switches, the
        result has only the first one.
        """
        ...

    def true_weights(self, batch: Batch) -> Float[Tensor, "batch time hypothesis"]:
        """Return the true probability that the next token follows each hypothesis.

        It is given the hypotheses of all tokens so far.
        """
        ...

    def log_likelihood(
        self, log_p: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time hypothesis"]:
        """Return the log-likelihood of the tokens so far and of each next hypothesis.

        `log_p` comes from `Laws`.
        """
        ...

    def posterior(
        self, log_p: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time hypothesis"]:
        """Return the posterior probability of each hypothesis for the next token."""
        ...

    def likeliest(self, log_p: Float[Tensor, "batch time hypothesis"]) -> Int[Tensor, "batch time"]:
        """Return the likeliest hypothesis (its index) of the next token.

        Ties go to the first.
        """
        ...

    def moved(self, log_joint: list[float]) -> list[float]:
        """Return each hypothesis's log-probability for the next token.

        Given is its log-probability for the last token.
        """
        ...


@runtime_checkable
class MatrixTask(CausalTask, Protocol):
    """A task with one matrix, and with roots drawn from its stationary distribution."""

    @property
    def P(self) -> Float[Tensor, "state state"]: ...  # noqa: N802 (the paper's name)

    @property
    def stationary(self) -> Float[Tensor, " state"]: ...


class ShownTask(Drawn):
    """The repr and the picture of a task, made from the members that all tasks have."""

    drawing = "sih.results.plots.task:draw_task"

    def _facts(self) -> Mapping[str, Any]:
        task: Any = self
        fields = {field.name: getattr(task, field.name) for field in dataclasses.fields(task)}
        facts = {name: value for name, value in fields.items() if not isinstance(value, Tensor)}
        labels = {} if "lags" in facts else {"hypotheses": len(task.hypotheses)}
        usual = bool((task.prior == task.prior[0]).all())
        return {
            "num_states": task.num_states,
            **labels,
            **facts,
            **({} if usual else {"prior": task.prior.tolist()}),
        }


class KnownMatrix:
    """A part of a task: one known matrix `P`, with its stationary distribution."""

    P: Float[Tensor, "state state"]
    parents: Callable[[int], Int[Tensor, "hypothesis time"]]

    @property
    def num_states(self) -> int:
        """Return the number of states."""
        return self.P.shape[0]

    @cached_property
    def stationary(self) -> Float[Tensor, " state"]:
        r"""Return the stationary distribution $\pi$ of P."""
        return stationary_distribution(self.P)

    @property
    def initial(self) -> Float[Tensor, " state"]:
        """Return the distribution of a token without a parent, the stationary one."""
        return self.stationary

    def draw_transitions(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Float[Tensor, "state state"]:
        return self.P

    def transitions(self, batch: Batch) -> Float[Tensor, "1 state state"]:
        return self.P[None]

    def laws(self, tokens: Int[Tensor, "batch time"]) -> RowLaws:
        return RowLaws(tokens, self.parents, self.P[None], self.initial)

    def memory(self) -> KnownRows:
        return KnownRows(self.P)


class OneHypothesis:
    """A part of a task: one hypothesis, drawn from the prior, for a whole sequence."""

    def draw_paths(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Int[Tensor, " batch"]:
        return first

    def true_weights(self: CausalTask, batch: Batch) -> Float[Tensor, "batch time hypothesis"]:
        if batch.lags.ndim != 1:
            raise FieldError(
                "lags",
                f"lags must be a tensor with one lag a sequence; got {described(batch.lags)}",
            )
        return one_hot(batch.lags, self.hypotheses)[:, None, :].expand(
            -1, batch.tokens.shape[1], -1
        )

    def log_likelihood(
        self, log_p: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time hypothesis"]:
        return log_p.cumsum(dim=1)

    def posterior(
        self: CausalTask, log_p: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time hypothesis"]:
        log_likelihood = possible(self.log_likelihood(log_p))
        return torch.softmax(log_likelihood + self.prior.log().to(log_p.device), dim=-1)

    def likeliest(
        self: CausalTask, log_p: Float[Tensor, "batch time hypothesis"]
    ) -> Int[Tensor, "batch time"]:
        return leaders(possible(self.log_likelihood(log_p))).int().argmax(dim=-1)

    def moved(self, log_joint: list[float]) -> list[float]:
        return log_joint


def first_position(task: CausalTask) -> int:
    """Return the first token with a parent under some hypothesis (max_lag for lags)."""
    return first_with_parent(task.parents(task.length))


def one_hot(
    lags: Int[Tensor, "*batch"], hypotheses: tuple[int, ...]
) -> Float[Tensor, "*batch hypothesis"]:
    """Return 1 for the hypothesis of each label and 0 for the others.

    Raises a FieldError if a label belongs to no hypothesis.
    """
    is_lag = lags[..., None] == torch.tensor(hypotheses, device=lags.device)
    if not is_lag.any(dim=-1).all():
        wrong = tuple((~is_lag.any(dim=-1)).nonzero()[0].tolist())
        found = f"the lag of sequence {wrong[0]} is {int(lags[wrong])}"
        raise FieldError("lags", f"{found}, but the task's lags are {hypotheses}")
    return is_lag.to(torch.float64)


_KINDS = {
    "Task": "a sih.Task",
    "MatrixTask": "a task with a known matrix",
    "Lagged": "a task of lags",
}


def check_task(task: object, kind: type = CausalTask) -> None:
    """Raise a FieldError unless the object is a task of this kind."""
    wanted = _KINDS.get(kind.__name__, "a task")
    check_kind("task", task, kind, f"{wanted}, e.g. sih.Task(P, lags=(1, 2, 3), length=128)")
