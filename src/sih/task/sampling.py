"""Sampling of sequences from any task, given the parents of its tokens.

For lags this is the paper's Algorithm 1. Neighbours are drawn together if all their
parents come before them. With lag k these are k tokens at a time, and their parents are
a slice.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import (
    FieldError,
    check_device,
    check_memory,
    check_sizes,
    described,
    generator,
    is_whole,
)
from sih.base.types import Seed
from sih.task.batch import Batch
from sih.task.laws import first_with_parent, with_initial
from sih.task.parents import CausalTask, check_task

TABLE_LIMIT = 2**20
"""Largest number of entries of a look-up table in `sample`. Beyond it, rows of P are
searched."""
CHUNK = 2**22
"""Uniform numbers that `sample` draws at a time."""
Block = tuple[int, int, Any]
"""Positions [first, last) and an index of their parents, or None if they have none."""


def sample(
    task: CausalTask,
    size: int,
    *,
    rng: Seed,
    lag: int | None = None,
    device: torch.device | str | None = None,
) -> Batch:
    r"""Return a batch of `size` sequences drawn from a task.

    The hypothesis of each sequence is drawn from the prior. Then token i is drawn from
    $P_{s_j,\,\cdot}$ with j its parent, or from the initial distribution if it has no
    parent. A draw inverts the distribution function of its row at a uniform number. The
    same generator state gives the same tokens.

    Two batches from one seed that differ only in `lag` are counterfactual pairs. They
    share the first max_lag tokens, the matrices of a `FreshTask`, and the random
    numbers behind all other tokens.

    Args:
        task: the task to sample from.
        size: number of sequences.
        rng: a generator, or a seed.
        lag: the lag of all sequences (in a `SwitchingTask`, the first lag). By default
            it is drawn for each sequence.
        device: the device of the result. Default: the generator's device.

    Returns:
        The batch: `tokens` (size, length), `lags` (size,) or (size, length), and `P`
        (size, state, state) if each sequence has its own matrix.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=8)
    >>> sih.sample(task, size=2, rng=3).tokens
    tensor([[0, 0, 0, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 0, 0, 0]])
    """
    check_task(task)
    check_sizes(size=size)
    rng = generator(rng)
    if lag is not None and (not is_whole(lag) or lag not in task.hypotheses):
        raise FieldError(
            "lag",
            f"lag is one of the task's, {', '.join(map(str, task.hypotheses))}; got {described(lag)}",
        )
    device = check_device(device) if device is not None else rng.device
    needed = 8 * task.length * (3 * size + 16 * len(task.hypotheses))
    check_memory(needed, f"{size:,} sequences of {task.length:,} tokens")
    if lag is None:
        prior_cdf = _distribution_functions(task.prior[None])[0].to(device)
        first = torch.searchsorted(prior_cdf, _uniform((size,), rng, device), right=True)
    else:
        first = torch.full((size,), task.hypotheses.index(lag), device=device)
    P = task.draw_transitions(first, rng).to(device)
    cdf = _distribution_functions(
        with_initial(P if P.ndim > 2 else P[None], task.initial.to(device))
    )
    draw: _TableDraw | _SearchDraw = (
        _TableDraw(cdf) if cdf.numel() * cdf.shape[0] <= TABLE_LIMIT else _SearchDraw(cdf)
    )
    own = (
        torch.arange(size, device=device) * (P.shape[-1] + 1) if P.ndim > 2 else None
    )  # the first row of each sequence's matrix

    path = task.draw_paths(first, rng).to(device)
    parents = task.parents(task.length)
    start = first_with_parent(parents)
    if path.ndim > 1:
        blocks = partial(_path_blocks, path, parents.to(device), start)
        tokens = _sample_blocks(
            blocks, (task.length, size), start, draw, own, rng, device
        ).T.contiguous()
    else:
        tokens = torch.empty((size, task.length), dtype=torch.int64, device=device)
        for index in range(len(task.hypotheses)):
            members = (path == index).nonzero().flatten()
            if len(members):
                theirs, blocks = (
                    None if own is None else own[members],
                    partial(_blocks, parents[index].tolist()),
                )
                shape = (task.length, len(members))
                tokens[members] = _sample_blocks(blocks, shape, start, draw, theirs, rng, device).T
    lags = torch.tensor([*task.hypotheses, 0], device=device)[path]
    return Batch(tokens, lags, P if P.ndim > 2 else None)


def _sample_blocks(
    blocks: Callable[[int, int], Iterator[Block]],
    shape: tuple[int, int],
    start: int,
    draw: _TableDraw | _SearchDraw,
    own: Int[Tensor, " batch"] | None,
    rng: torch.Generator,
    device: torch.device,
) -> Int[Tensor, "time batch"]:
    """Return sequences, time first, with uniform numbers drawn ahead in chunks."""
    time, size = shape
    tokens = torch.empty(shape, dtype=torch.int64, device=device)
    written, offset = _numpy_if_cpu(tokens), None if own is None else _numpy_if_cpu(own)
    edges = sorted({0, *range(start, time, max(1, CHUNK // size)), time})
    for begin, end in itertools.pairwise(edges):
        keys = draw.keys(_uniform((end - begin, size), rng, device))
        for first, last, source in blocks(begin, end):
            row = draw.root if source is None else written[source]
            key = keys[first - begin : last - begin]
            written[first:last] = draw(key, row if offset is None else row + offset)
    return tokens


def _blocks(all_parents: list[int], begin: int, end: int) -> Iterator[Block]:
    """Yield blocks [first, last) of the positions [begin, end), each with its parents.

    The parents are None if the tokens of a block have none. Otherwise they all come
    before the block, and are a slice or a list.
    """
    parents = all_parents[begin:end]
    if parents[0] >= 0 and parents == list(
        range(parents[0], parents[0] + len(parents))
    ):  # one lag throughout
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


def _path_blocks(
    path: Int[Tensor, "batch time"],
    parents: Int[Tensor, "hypothesis time"],
    start: int,
    begin: int,
    end: int,
) -> Iterator[Block]:
    """Yield blocks where each token has its own hypothesis.

    No block is longer than the smallest distance to a parent.
    """
    if begin < start:
        yield begin, end, None
        return
    position = torch.arange(begin, end, device=path.device)
    back = int((position - parents[:, begin:end]).min())
    followed = parents[:, begin:end].T.gather(1, path[:, begin:end].T)
    rows, columns = (
        _numpy_if_cpu(followed),
        _numpy_if_cpu(torch.arange(len(path), device=path.device)),
    )
    for first in range(begin, end, back):
        last = min(first + back, end)
        yield first, last, (rows[first - begin : last - begin], columns)


class _TableDraw:
    """Draws from few states: turns uniform numbers into states by look-up.

    `keys` prepares many numbers at once. A call then draws from the row of each token's
    parent, or from the initial distribution (`root`) if it has none. Both use operators
    that NumPy and torch share; `_numpy_if_cpu` chooses between them.

    The jumps of the distribution functions of all rows cut [0, 1) into cells. Given a
    number's cell and the row, the state is a look-up. The cell is a look-up, too,
    except for the few numbers that share one of `BINS` equal bins with a jump. Those
    are searched for.
    """

    BINS = 2**12  # a power of 2, so that scaling by it is exact

    def __init__(self, cdf: Float[Tensor, "row state"]) -> None:
        self.rows, self.root = cdf.shape[0], cdf.shape[1]
        self.jumps = cdf.flatten().unique()
        left_ends = (
            torch.cat([self.jumps.new_zeros(1), self.jumps]).expand(self.rows, -1).contiguous()
        )
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
    """Draws from many states: binary search in the parent's row, all at once."""

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
    """Return the same memory as a NumPy array if it is on the CPU.

    NumPy's small operations cost a fraction of torch's.
    """
    return tensor.numpy() if tensor.device.type == "cpu" else tensor


def _uniform(
    shape: tuple[int, ...], rng: torch.Generator, device: torch.device
) -> Float[Tensor, " *shape"]:
    return torch.rand(shape, generator=rng, device=rng.device, dtype=torch.float64).to(device)


def _distribution_functions(rows: Float[Tensor, "row state"]) -> Float[Tensor, "row state"]:
    """Return each row's cumulative sum, exactly 1 from the last possible state on."""
    cdf = rows.cumsum(dim=-1)
    return cdf / cdf[:, -1:]
