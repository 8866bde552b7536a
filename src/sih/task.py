"""The task: sequences from interleaved Markov chains, a lag drawn for each (paper, Sec. 4 and Algorithm 1).

The paper counts positions from 1, the code from 0: token i of the code is X_{i+1} of the paper. The first `max_lag`
tokens, 0 .. max_lag - 1, are drawn from the stationary law whatever the lag.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.markov import MatrixLike, as_transition_matrix, stationary_distribution

TABLE_LIMIT = 2**20
"""Entries of a look-up table that `sample` may build; beyond it, it searches the rows of P instead."""
CHUNK = 2**22
"""Uniform numbers drawn at a time by `sample`."""


@dataclass(frozen=True, eq=False)
class Task:
    """A transition matrix, the set of lags, the length of a sequence, and the law of the lag (uniform by default).

    >>> Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2, 3), length=128).max_lag
    3
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
        assign(self, "length", _check_length(length, self.lags))
        assign(self, "lag_prior", _check_prior(lag_prior, self.lags))

    @property
    def num_states(self) -> int:
        return self.P.shape[0]

    @property
    def max_lag(self) -> int:
        return self.lags[-1]

    @property
    def min_lag(self) -> int:
        return self.lags[0]

    @cached_property
    def stationary(self) -> Float[Tensor, " state"]:
        return stationary_distribution(self.P)

    def with_length(self, length: int) -> Task:
        """The same chains, seen for another length."""
        return Task(self.P, self.lags, length, self.lag_prior)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers; `Task(**task.to_dict())` is the same task."""
        return {
            "P": self.P.tolist(),
            "lags": list(self.lags),
            "length": self.length,
            "lag_prior": self.lag_prior.tolist(),
        }


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences and the lag (its value, not its index) that made each."""

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, " batch"]


def sample(task: Task, size: int, *, rng: torch.Generator, device: torch.device | str | None = None) -> Batch:
    r"""`size` sequences by the paper's Algorithm 1; lag, first tokens and transitions all drawn from `rng`.

    $X_i \sim \pi$ for the first max_lag tokens, then $X_i \sim P_{X_{i-k},\,\cdot}$. A draw inverts the distribution
    function of its row at a uniform number. The numbers are made ahead for all sequences and many positions, and
    each is turned, by one sorted search, into the cell between neighbouring jumps of all the rows' functions
    together; given the cell, the next state is a table look-up, so that the loop over positions only looks up.

    Runs on the generator's device unless told otherwise; the same generator state gives the same tokens.
    """
    if size < 1:
        raise ValueError(f"size is the number of sequences, at least 1; got {size}")
    device = torch.device(device) if device is not None else rng.device
    cdf = _distribution_functions(torch.cat([task.P, task.stationary[None]])).to(device)  # row num_states: the start
    pick = _TableDraw(cdf) if cdf.numel() * cdf.shape[0] <= TABLE_LIMIT else _SearchDraw(cdf)

    prior_cdf = _distribution_functions(task.lag_prior[None])[0].to(device)
    drawn = torch.rand(size, generator=rng, device=rng.device, dtype=torch.float64).to(device)
    lags = torch.tensor(task.lags, device=device)[torch.searchsorted(prior_cdf, drawn, right=True)]

    tokens = torch.empty((task.length, size), dtype=torch.int64, device=device)  # time first: a step is one row
    flat = tokens.view(-1)
    source = torch.arange(size, device=device) - lags * size  # where X_{-k} would be; one row further every step
    start = torch.full((size,), task.num_states, device=device)
    rows = max(1, CHUNK // size)
    for begin in range(0, task.length, rows):
        end = min(begin + rows, task.length)
        uniform = torch.rand((end - begin, size), generator=rng, device=rng.device, dtype=torch.float64)
        keys = pick.keys(uniform.to(device))
        for i in range(begin, end):
            previous = start if i < task.max_lag else torch.take(flat, source)
            tokens[i] = pick(keys[i - begin], previous)
            source += size
    return Batch(tokens.T.contiguous(), lags)


class _TableDraw:
    """next[cell, row]: the state that row's function reaches first at or after the cell's left end."""

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.jumps = cdf.flatten().unique()
        left_ends = torch.cat([self.jumps.new_zeros(1), self.jumps])
        rows = cdf.shape[0]
        table = torch.searchsorted(cdf, left_ends.expand(rows, -1).contiguous(), right=True)
        self.table = table.T.contiguous().clamp_max(cdf.shape[1] - 1).flatten()
        self.rows = rows

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Int[Tensor, "time batch"]:
        return torch.searchsorted(self.jumps, uniform, right=True).mul_(self.rows)

    def __call__(self, key: Int[Tensor, " batch"], previous: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        return torch.take(self.table, key + previous)


class _SearchDraw:
    """Many states: a binary search in the row of the previous state, all sequences side by side."""

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.states = cdf.shape[1]
        self.cdf = cdf.flatten()

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Float[Tensor, "time batch"]:
        return uniform

    def __call__(self, key: Float[Tensor, " batch"], previous: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        offset = previous * self.states
        low = torch.zeros_like(previous)  # the answer is the number of entries <= key: low <= answer <= high
        high = torch.full_like(previous, self.states - 1)  # the last entry is 1 > key
        for _ in range(self.states.bit_length()):
            middle = (low + high) // 2
            beyond = (torch.take(self.cdf, offset + middle) <= key) & (low < high)
            low = torch.where(beyond, middle + 1, low)
            high = torch.where(beyond, high, middle)
        return low


def _distribution_functions(rows: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
    """Cumulative sums that reach exactly 1 at the last state of positive probability."""
    cdf = rows.cumsum(dim=-1)
    return cdf / cdf[:, -1:]


def check_lags(lags: Sequence[SupportsIndex]) -> tuple[int, ...]:
    """The lags as a tuple of distinct, positive, increasing integers, or a ValueError."""
    try:
        given = tuple(operator.index(lag) for lag in lags)
    except TypeError:
        given = ()
    if not given or sorted(set(given)) != list(given) or given[0] < 1:
        raise ValueError(f"lags must be distinct, positive and increasing whole numbers, e.g. (1, 2, 3); got {lags!r}")
    return given


def _check_length(length: SupportsIndex, lags: tuple[int, ...]) -> int:
    try:
        if operator.index(length) > lags[-1]:
            return operator.index(length)
    except TypeError:
        pass
    raise ValueError(f"length must be a whole number above the largest lag, {lags[-1]}; got {length!r}")


def _check_prior(prior: Tensor | np.ndarray | Sequence[float] | None, lags: tuple[int, ...]) -> Float[Tensor, " lag"]:
    if prior is None:
        return torch.full((len(lags),), 1 / len(lags), dtype=torch.float64)
    law = torch.as_tensor(prior).detach().to(torch.float64)
    if law.shape != (len(lags),) or not (law > 0).all() or abs(law.sum().item() - 1) > 1e-6:
        raise ValueError(
            f"lag_prior is one positive probability for each of the {len(lags)} lags, summing to 1 "
            f"(leave out a lag that never occurs); got {law.tolist()}"
        )
    return law / law.sum()
