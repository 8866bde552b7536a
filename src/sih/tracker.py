"""The exact posterior over lags, one token at a time."""

import math
import operator
from collections import deque
from typing import SupportsIndex

import torch
from jaxtyping import Float
from torch import Tensor

from sih.checks import FieldError, described
from sih.task import Task, check_task


class LagTracker:
    """Follows one sequence of any length, in time per token proportional to the number of lags and in fixed memory.

    After the same tokens, `update` returns what `lag_posterior`, and `predict` what `bma`, give at that position.

    >>> tracker = LagTracker(Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8))
    >>> for token in (0, 1, 1, 1):
    ...     posterior = tracker.update(token)
    >>> [round(p, 3) for p in posterior.tolist()]  # lag 1 made 1 -> 1 -> 1; lag 2 would have had to make 0 -> 1
    [0.833, 0.167]
    """

    def __init__(self, task: Task) -> None:
        check_task(task, Task)
        self.task = task
        self.seen = 0
        self._log_P: list[list[float]] = task.P.log().tolist()
        self._log_likelihood = [0.0] * len(task.lags)
        self._log_prior: list[float] = task.lag_prior.log().tolist()
        self._recent: deque[int] = deque(maxlen=task.max_lag)

    def update(self, token: SupportsIndex) -> Float[Tensor, " lag"]:
        """Take the next token and give the posterior over the task's lags after it.

        >>> tracker = LagTracker(Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8))
        >>> tracker.update(0)  # says nothing yet: the prior
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        try:
            token = operator.index(token)
        except TypeError:
            raise FieldError("token", f"a token is a whole number; got {described(token)}") from None
        if not 0 <= token < self.task.num_states:
            raise ValueError(f"tokens are states 0 to {self.task.num_states - 1}; got {token} at position {self.seen}")
        if self.seen >= self.task.max_lag:
            updated = [
                total + self._log_P[self._recent[-lag]][token]
                for total, lag in zip(self._log_likelihood, self.task.lags, strict=True)
            ]
            if max(updated) == -math.inf:  # nothing is changed, so that another token may come instead
                raise ValueError(f"token {token} at position {self.seen} is impossible under every lag of the task")
            self._log_likelihood = updated
        self._recent.append(token)
        self.seen += 1
        return self.posterior()

    def posterior(self) -> Float[Tensor, " lag"]:
        """Give the probability of each lag after the tokens so far.

        >>> LagTracker(Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)).posterior()
        tensor([0.5000, 0.5000], dtype=torch.float64)
        """
        log_joint = [p + total for p, total in zip(self._log_prior, self._log_likelihood, strict=True)]
        return torch.tensor(log_joint, dtype=torch.float64).softmax(dim=0)

    def predict(self) -> Float[Tensor, " state"]:
        """Give the law of the next token.

        >>> LagTracker(Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)).predict()  # the stationary law
        tensor([0.8333, 0.1667], dtype=torch.float64)
        """
        if self.seen < self.task.max_lag:
            return self.task.stationary.clone()
        return self.posterior() @ self.task.P[[self._recent[-lag] for lag in self.task.lags]]
