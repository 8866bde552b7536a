"""The task: sequences from interleaved Markov chains, a lag drawn for each (paper, Sec. 4 and Algorithm 1).

The paper counts positions from 1, the code from 0: token i of the code is X_{i+1} of the paper. The first `max_lag`
tokens, 0 .. max_lag - 1, are drawn from the stationary law whatever the lag.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, SupportsIndex

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
    r"""`size` sequences by the paper's Algorithm 1; lags, first tokens and transitions all drawn from `rng`.

    $X_i \sim \pi$ for the first max_lag tokens, then $X_i \sim P_{X_{i-k},\,\cdot}$. A draw inverts the distribution
    function of its row at a uniform number. Runs on the generator's device unless told otherwise; the same generator
    state gives the same tokens.
    """
    if size < 1:
        raise ValueError(f"size is the number of sequences, at least 1; got {size}")
    device = torch.device(device) if device is not None else rng.device
    cdf = _distribution_functions(torch.cat([task.P, task.stationary[None]])).to(device)  # row num_states: the start
    draw: _Draw = _TableDraw(cdf) if cdf.numel() * cdf.shape[0] <= TABLE_LIMIT else _SearchDraw(cdf)

    prior_cdf = _distribution_functions(task.lag_prior[None])[0].to(device)
    chosen = torch.searchsorted(prior_cdf, _uniform((size,), rng, device), right=True)
    tokens = torch.empty((size, task.length), dtype=torch.int64, device=device)
    for index, lag in enumerate(task.lags):
        rows = (chosen == index).nonzero().flatten()
        if len(rows):
            tokens[rows] = _sample_lag(task, lag, len(rows), draw, rng, device).T
    return Batch(tokens, torch.tensor(task.lags, device=device)[chosen])


def _sample_lag(
    task: Task, lag: int, size: int, draw: _Draw, rng: torch.Generator, device: torch.device
) -> Int[Tensor, "time batch"]:
    """Sequences of one lag, time first. `lag` consecutive tokens have their parents in the `lag` before them, so they
    are drawn together, from uniform numbers made ahead for as many positions as memory allows."""
    tokens = torch.empty((task.length, size), dtype=torch.int64, device=device)
    written = _light(tokens)
    first = task.max_lag
    written[:first] = draw(draw.keys(_uniform((first, size), rng, device)), task.num_states)
    chunk = lag * max(1, CHUNK // (size * lag))
    for begin in range(first, task.length, chunk):
        end = min(begin + chunk, task.length)
        keys = draw.keys(_uniform((end - begin, size), rng, device))
        for i in range(begin, end, lag):
            key = keys[i - begin : i - begin + lag]
            written[i : i + lag] = draw(key, written[i - lag : i - lag + len(key)])
    return tokens


class _Draw(Protocol):
    """`keys` prepares uniform numbers, many at once; a call gives the state each key reaches in its parent's row.

    Calls use only operators that NumPy and torch share, on whichever `_light` chose.
    """

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Any: ...

    def __call__(self, key: Any, parent: Any) -> Any: ...


class _TableDraw:
    """Few states. The jumps of all the rows' distribution functions together cut [0, 1) into cells; given a number's
    cell and the row, the state is a look-up. The cell is a look-up too, but for the few numbers that share one of
    `BINS` equal bins with a jump; those are searched for."""

    BINS = 2**12  # a power of 2, so that scaling by it is exact

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.rows = cdf.shape[0]
        self.jumps = cdf.flatten().unique()
        left_ends = torch.cat([self.jumps.new_zeros(1), self.jumps]).expand(self.rows, -1).contiguous()
        states = torch.searchsorted(cdf, left_ends, right=True).clamp_max(cdf.shape[1] - 1)
        self.table = _light(states.T.flatten())
        edges = torch.arange(self.BINS + 1, device=cdf.device, dtype=torch.float64) / self.BINS
        at_edges = torch.searchsorted(self.jumps, edges, right=True)
        self.cell_of_bin = torch.where(at_edges[:-1] == at_edges[1:], at_edges[:-1], -1)

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Any:
        cells = self.cell_of_bin[(uniform * self.BINS).long()]
        unsure = (cells < 0).nonzero(as_tuple=True)
        cells[unsure] = torch.searchsorted(self.jumps, uniform[unsure], right=True)
        return _light(cells.mul_(self.rows))

    def __call__(self, key: Any, parent: Any) -> Any:
        return self.table[key + parent]


class _SearchDraw:
    """Many states: a binary search in the row of the parent, all sequences side by side."""

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.states = cdf.shape[1]
        self.cdf = _light(cdf.flatten())

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Any:
        return _light(uniform)

    def __call__(self, key: Any, parent: Any) -> Any:
        low = (key < 0) + 0  # the answer is the number of entries <= key: low <= answer <= high
        high = low + self.states - 1  # the last entry is 1 > key
        for _ in range(self.states.bit_length()):
            middle = (low + high) // 2
            beyond = (self.cdf[parent * self.states + middle] <= key) & (low < high)
            low = low + beyond * (middle + 1 - low)
            high = middle + beyond * (high - middle)
        return low


def _light(tensor: Tensor) -> Any:
    """The same memory as a NumPy array where that can be: its small operations cost a fraction of torch's."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _uniform(shape: tuple[int, ...], rng: torch.Generator, device: torch.device) -> Float[Tensor, ...]:
    return torch.rand(shape, generator=rng, device=rng.device, dtype=torch.float64).to(device)


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
    law = torch.as_tensor(prior, dtype=torch.float64).detach()
    if law.shape != (len(lags),) or not (law > 0).all() or abs(law.sum().item() - 1) > 1e-6:
        raise ValueError(
            f"lag_prior is one positive probability for each of the {len(lags)} lags, summing to 1 "
            f"(leave out a lag that never occurs); got {law.tolist()}"
        )
    return law / law.sum()
