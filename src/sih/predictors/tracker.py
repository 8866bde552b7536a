"""The exact posterior over lags, one token at a time."""

import math
import operator
from collections import deque
from collections.abc import Mapping
from typing import Any, SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError, check_number, described
from sih.base.showing import Shown
from sih.task import CausalTask, Lagged, check_task


class LagTracker(Shown):
    """An exact online posterior over lags for one sequence of any length.

    The time per token is proportional to the number of lags, and memory is fixed. After
    the same tokens, `update` equals `lag_posterior` and `predict` equals `bma` at that
    position. This holds for every task with lags: with a known matrix, with an unknown
    one, and with lags that switch at a known rate.

    Where lags may switch at an unknown rate, a `forgetting` below 1 discounts the
    evidence of each token by this factor with every further token. The posterior is
    then not exact.

    Args:
        task: a task with lags.
        forgetting: the factor by which evidence shrinks per token, above 0 and at
            most 1.

    >>> import sih
    >>> tracker = LagTracker(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8))
    >>> for token in (0, 1, 1, 1):
    ...     posterior = tracker.update(token)
    >>> [round(p, 3) for p in posterior.tolist()]  # lag 1 made 1 -> 1 -> 1; lag 2 would have had to make 0 -> 1
    [0.833, 0.167]
    """

    def __init__(self, task: CausalTask, *, forgetting: float = 1.0) -> None:
        check_task(task, Lagged)
        assert isinstance(task, Lagged)
        wanted = "the factor by which each token's evidence shrinks, above 0 and at most 1"
        check_number("forgetting", forgetting, 0, wanted=wanted)
        if not 0 < forgetting <= 1:
            raise FieldError("forgetting", f"forgetting is {wanted}; got {forgetting}")
        self.task: CausalTask = task
        self.forgetting = forgetting
        self.seen = 0
        self._lags, self._rows = task.lags, task.memory()
        self._log_prior: list[float] = task.prior.log().tolist()
        self._log_joint = list(self._log_prior)
        self._recent: deque[int] = deque(maxlen=task.max_lag)

    def _facts(self) -> Mapping[str, Any]:
        return {
            "seen": self.seen,
            "posterior": dict(zip(self._lags, self.posterior().tolist(), strict=True)),
        }

    def update(self, token: SupportsIndex) -> Float[Tensor, " lag"]:
        """Return the posterior over lags after one more token.

        >>> import sih
        >>> tracker = LagTracker(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8))
        >>> tracker.update(0)  # says nothing yet: the prior
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        try:
            token = operator.index(token)
        except TypeError:
            raise FieldError(
                "token", f"a token is a whole number; got {described(token)}"
            ) from None
        if not 0 <= token < self.task.num_states:
            raise ValueError(
                f"tokens are states 0 to {self.task.num_states - 1}; got {token} at position {self.seen}"
            )
        if self.seen >= self._lags[-1]:
            self._learn(token)
        self._recent.append(token)
        self.seen += 1
        return self.posterior()

    def _learn(self, token: int) -> None:
        parents = [self._recent[-lag] for lag in self._lags]
        log_joint = []
        for h, (before, prior) in enumerate(zip(self._log_joint, self._log_prior, strict=True)):
            p = self._rows.probability(h, parents[h], token)
            kept = (
                before
                if self.forgetting == 1 or before == -math.inf
                else prior + self.forgetting * (before - prior)
            )
            log_joint.append(kept + (math.log(p) if p > 0 else -math.inf))
        if (
            max(log_joint) == -math.inf
        ):  # the state is unchanged, so another token can be given instead
            raise ValueError(
                f"token {token} at position {self.seen} is impossible under every lag of the task"
            )
        for h, parent in enumerate(parents):
            self._rows.learn(h, parent, token)
        self._log_joint = self.task.moved(log_joint)

    def posterior(self) -> Float[Tensor, " lag"]:
        """Return the probability of each lag after the tokens so far.

        Where lags switch, it is the lag of the next token.

        >>> import sih
        >>> LagTracker(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)).posterior()
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        return torch.tensor(self._log_joint, dtype=torch.float64).softmax(dim=0)

    def predict(self) -> Float[Tensor, " state"]:
        """Return the distribution of the next token.

        >>> import sih
        >>> LagTracker(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)).predict()  # the stationary law
        tensor([0.8333, 0.1667], dtype=torch.float64)
        """
        if self.seen < self._lags[-1]:
            return self.task.initial.clone()
        laws = [self._rows.law(h, self._recent[-lag]) for h, lag in enumerate(self._lags)]
        return self.posterior() @ torch.tensor(laws, dtype=torch.float64)
