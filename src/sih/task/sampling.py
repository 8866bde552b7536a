"""Sequences of any task, by their tokens' parents (for lags, the paper's Algorithm 1).

Neighbours whose parents all come before them are drawn together. With lag k these are k tokens at a time, and their
parents are a slice.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.checks import FieldError, Seed, check_memory, check_sizes, described, generator
from sih.task.parents import Batch, MatrixTask, check_task, counted

TABLE_LIMIT = 2**20
"""Entries of a look-up table that `sample` may build; beyond it, it searches the rows of P instead."""
CHUNK = 2**22
"""Uniform numbers drawn at a time by `sample`."""


def sample(
    task: MatrixTask, size: int, *, rng: Seed, lag: int | None = None, device: torch.device | str | None = None
) -> Batch:
    r"""Draw `size` sequences: of each its hypothesis from the prior, then its tokens one after the other.

    Token i is drawn from $P_{s_j,\,\cdot}$ with j its parent, or from the stationary law if it has none, as the first
    max_lag tokens of a lag task. A draw inverts the distribution function of its row at a uniform number. The same
    generator state gives the same tokens.

    Args:
        task: what is sampled.
        size: how many sequences.
        rng: a generator, or a seed.
        lag: the lag of all sequences. Two batches from one seed that differ only in it are counterfactual pairs: their
            first max_lag tokens are the same, and the same numbers draw the others.
        device: where, the generator's device unless given.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)
    >>> sih.sample(task, size=2, rng=3).tokens
    tensor([[0, 0, 0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    check_task(task, MatrixTask)
    check_sizes(size=size)
    rng = generator(rng)
    if lag is not None and (not isinstance(lag, int) or lag not in task.hypotheses):
        raise FieldError(
            "lag", f"lag is one of the task's, {', '.join(map(str, task.hypotheses))}; got {described(lag)}"
        )
    device = torch.device(device) if device is not None else rng.device
    needed = 8 * task.length * (3 * size + 16 * len(task.hypotheses))
    check_memory(needed, f"{size:,} sequences of {task.length:,} tokens")
    cdf = _distribution_functions(torch.cat([task.P, task.stationary[None]])).to(device)
    draw: _TableDraw | _SearchDraw = _TableDraw(cdf) if cdf.numel() * cdf.shape[0] <= TABLE_LIMIT else _SearchDraw(cdf)

    if lag is None:
        prior_cdf = _distribution_functions(task.prior[None])[0].to(device)
        chosen = torch.searchsorted(prior_cdf, _uniform((size,), rng, device), right=True)
    else:
        chosen = torch.full((size,), task.hypotheses.index(lag), device=device)
    parents = task.parents(task.length)
    start = int(counted(parents).to(torch.uint8).argmax())  # the first token with a parent
    tokens = torch.empty((size, task.length), dtype=torch.int64, device=device)
    for index in range(len(task.hypotheses)):
        rows = (chosen == index).nonzero().flatten()
        if len(rows):
            tokens[rows] = _sample_hypothesis(parents[index], start, len(rows), draw, rng, device).T
    return Batch(tokens, torch.tensor(task.hypotheses, device=device)[chosen])


def _sample_hypothesis(
    parents: Int[Tensor, " time"],
    start: int,
    size: int,
    draw: _TableDraw | _SearchDraw,
    rng: torch.Generator,
    device: torch.device,
) -> Int[Tensor, "time batch"]:
    """Draw sequences of one hypothesis, time first, from uniform numbers made ahead for as many positions as fit."""
    tokens = torch.empty((len(parents), size), dtype=torch.int64, device=device)
    written = _numpy_if_cpu(tokens)
    edges = sorted({0, *range(start, len(parents), max(1, CHUNK // size)), len(parents)})
    for begin, end in itertools.pairwise(edges):
        keys = draw.keys(_uniform((end - begin, size), rng, device))
        for first, last, source in _blocks(parents[begin:end].tolist(), begin):
            row = draw.root if source is None else written[source]
            written[first:last] = draw(keys[first - begin : last - begin], row)
    return tokens


def _blocks(parents: list[int], begin: int) -> Iterator[tuple[int, int, slice | list[int] | None]]:
    """Cut the positions from `begin` on into blocks [first, last), and give what the tokens of each follow.

    That is None if they have no parents. Otherwise all their parents come before the block: a slice or a list.
    """
    end = begin + len(parents)
    if parents[0] >= 0 and parents == list(range(parents[0], parents[0] + len(parents))):  # one lag throughout
        lag = begin - parents[0]
        for first in range(begin, end, lag):
            last = min(first + lag, end)
            yield first, last, slice(first - lag, last - lag)
        return
    first = begin
    for position, parent in enumerate([*parents[1:], end], begin + 1):
        is_root = parents[first - begin] < 0
        if parent >= first or (parent < 0) != is_root:
            yield first, position, None if is_root else parents[first - begin : position - begin]
            first = position


class _TableDraw:
    """Turns uniform numbers into states by look-up, for few states.

    `keys` prepares many numbers at once, a call draws from the row of each one's parent (`root` if it has none: the
    stationary law), with operators that NumPy and torch share, on whichever `_numpy_if_cpu` chose.

    The jumps of all the rows' distribution functions together cut [0, 1) into cells. Given a number's cell and the row,
    the state is a look-up. The cell is a look-up too, but for the few numbers that share one of `BINS` equal bins with
    a jump. Those are searched for.
    """

    BINS = 2**12  # a power of 2, so that scaling by it is exact

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.rows, self.root = cdf.shape[0], cdf.shape[0] - 1
        self.jumps = cdf.flatten().unique()
        left_ends = torch.cat([self.jumps.new_zeros(1), self.jumps]).expand(self.rows, -1).contiguous()
        states = torch.searchsorted(cdf, left_ends, right=True).clamp_max(cdf.shape[1] - 1)
        self.table = _numpy_if_cpu(states.T.flatten())
        edges = torch.arange(self.BINS + 1, device=cdf.device, dtype=torch.float64) / self.BINS
        at_edges = torch.searchsorted(self.jumps, edges, right=True)
        self.cell_of_bin = torch.where(at_edges[:-1] == at_edges[1:], at_edges[:-1], -1)

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Any:
        cells = self.cell_of_bin[(uniform * self.BINS).long()]
        unsure = (cells < 0).nonzero(as_tuple=True)
        cells[unsure] = torch.searchsorted(self.jumps, uniform[unsure], right=True)
        return _numpy_if_cpu(cells.mul_(self.rows))

    def __call__(self, key: Any, parent: Any) -> Any:
        return self.table[key + parent]


class _SearchDraw:
    """Does the same by a binary search in the row of the parent, all sequences side by side, for many states."""

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.states = self.root = cdf.shape[1]
        self.cdf = _numpy_if_cpu(cdf.flatten())

    def keys(self, uniform: Float[Tensor, "time batch"]) -> Any:
        return _numpy_if_cpu(uniform)

    def __call__(self, key: Any, parent: Any) -> Any:
        low = (key < 0) + 0  # the answer is the number of entries <= key: low <= answer <= high
        high = low + self.states - 1  # the last entry is 1 > key
        for _ in range(self.states.bit_length()):
            middle = (low + high) // 2
            beyond = (self.cdf[parent * self.states + middle] <= key) & (low < high)
            low = low + beyond * (middle + 1 - low)
            high = middle + beyond * (high - middle)
        return low


def _numpy_if_cpu(tensor: Tensor) -> Any:
    """Give the same memory as a NumPy array where that can be: its small operations cost a fraction of torch's."""
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _uniform(shape: tuple[int, ...], rng: torch.Generator, device: torch.device) -> Float[Tensor, ...]:
    return torch.rand(shape, generator=rng, device=rng.device, dtype=torch.float64).to(device)


def _distribution_functions(rows: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
    """Sum up each row so that it reaches exactly 1 at the last state of positive probability."""
    cdf = rows.cumsum(dim=-1)
    return cdf / cdf[:, -1:]
