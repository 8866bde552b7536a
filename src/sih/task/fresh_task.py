"""A task with a new matrix for each sequence, to be learnt in context."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError, described
from sih.task.batch import Batch
from sih.task.counting import CountedRows, CountLaws
from sih.task.lags import Lagged, check_lags, check_length, check_prior
from sih.task.matrices import check_dirichlet, random_transition_matrices
from sih.task.parents import OneHypothesis


@dataclass(frozen=True, eq=False)
class FreshTask(Lagged, OneHypothesis):
    """A task with a transition matrix and a lag drawn anew for each sequence.

    The rows of each matrix are independent draws from a symmetric Dirichlet
    distribution of this `concentration`. The first max_lag tokens of a sequence are
    uniform. (A stationary start would be evidence about P that counting transitions
    does not use.)

    With lags (1,) this is the in-context bigram task of Edelman et al. (2024).

    Args:
        num_states: states of the chain, 2 or more.
        lags: the lags that a sequence may have, increasing.
        length: tokens in a sequence, more than the largest lag.
        concentration: of the Dirichlet rows. They are uniform on the simplex at 1.0,
            and nearer to deterministic below.
        lag_prior: (lag,), the probability of each lag. By default all are equally
            likely.

    >>> import sih
    >>> task = sih.FreshTask(num_states=3, lags=(1, 2), length=32)
    >>> batch = sih.sample(task, size=4, rng=0)
    >>> batch.P.shape
    torch.Size([4, 3, 3])
    """

    num_states: int
    lags: tuple[int, ...]
    length: int
    concentration: float
    lag_prior: Float[Tensor, " lag"]

    def __init__(
        self,
        num_states: int,
        lags: Sequence[SupportsIndex],
        length: SupportsIndex,
        concentration: float = 1.0,
        lag_prior: Tensor | np.ndarray | Sequence[float] | None = None,
    ) -> None:
        assign = object.__setattr__  # the dataclass is frozen
        check_dirichlet(num_states, concentration)
        assign(self, "num_states", num_states)
        assign(self, "lags", check_lags(lags))
        assign(self, "length", check_length(length, self.lags))
        assign(self, "concentration", float(concentration))
        assign(self, "lag_prior", check_prior(lag_prior, len(self.lags)))

    @property
    def initial(self) -> Float[Tensor, " state"]:
        """Return the distribution of the first max_lag tokens, which is uniform."""
        return torch.full((self.num_states,), 1 / self.num_states, dtype=torch.float64)

    def draw_transitions(
        self, first: Int[Tensor, " batch"], rng: torch.Generator
    ) -> Float[Tensor, "batch state state"]:
        return random_transition_matrices(
            len(first), self.num_states, rng=rng, concentration=self.concentration
        )

    def transitions(self, batch: Batch) -> Float[Tensor, "batch state state"]:
        shape = (len(batch), self.num_states, self.num_states)
        if batch.P is None or batch.P.shape != shape:
            found = "none" if batch.P is None else described(batch.P)
            raise FieldError(
                "batch", f"batch.P has the matrix of each sequence, of shape {shape}; got {found}"
            )
        return batch.P

    def laws(self, tokens: Int[Tensor, "batch time"]) -> CountLaws:
        return CountLaws(tokens, self.lags, self.num_states, self.concentration)

    def memory(self) -> CountedRows:
        return CountedRows(len(self.lags), self.num_states, self.concentration)
