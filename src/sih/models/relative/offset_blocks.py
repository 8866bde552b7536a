"""Names of the parts of a disentangled stream with relative positions.

With them nothing is addressed by its offset. The stream begins as one block, `token`
(S + 1 numbers, the last for the start token). A head copies every block that it reads,
under its own name. For example, `2.1/1.1/token` is the output of head 1 in layer 2 for
the tokens that head 1 of layer 1 had gathered. After the copies it writes `l.h/offset`
(R + 1 numbers), its attention by offset.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch

from sih.models.disentangled.blocks import listed
from sih.models.disentangled.written import WrittenBlocks

OFFSET = "offset"
"""The key block that is not a part of the stream: one-hot min(i - j, R)."""


class RelativeStream:
    r"""The names and columns of the blocks in the stream after all of `heads`.

    $h^{(l)} = [h^{(l-1)}, \hat h^{(l,1)}, \dots]$ with
    $\hat h^{(l,h)} = \sum_j a_{ij} [h_j ; \rho(i-j)]$

    >>> stream = RelativeStream(num_states=5, reach=4, heads=(1, 1))
    >>> stream.names
    ('token', '1.1/token', '1.1/offset', '2.1/token', '2.1/1.1/token', '2.1/1.1/offset', '2.1/offset')
    >>> stream["1.1/offset"], stream.dim
    (slice(12, 17, None), 39)
    """

    def __init__(self, num_states: int, reach: int, heads: Sequence[int] = ()) -> None:
        names = ["token"]
        for layer, count in enumerate(heads, 1):
            read = (*names, OFFSET)
            names += [f"{layer}.{head}/{name}" for head in range(1, count + 1) for name in read]
        widths = {"token": num_states + 1, OFFSET: reach + 1}
        self.names = tuple(names)
        self._slices: dict[str, slice] = {}
        start = 0
        for name in names:
            stop = start + widths[name.rpartition("/")[2]]
            self._slices[name] = slice(start, stop)
            start = stop
        self.dim = start

    def __getitem__(self, name: str) -> slice:
        """Return the columns of a block."""
        if name not in self._slices:
            raise ValueError(
                f"there is no block {name!r} here; the blocks are {listed(self.names)}"
            )
        return self._slices[name]


class OffsetBlocks(WrittenBlocks):
    """The written blocks of a disentangled transformer with relative positions.

    All others are zero.

    >>> blocks = OffsetBlocks(num_states=5, reach=4, heads=(1, 1, 1))
    >>> blocks.block("2.1", "1.1/offset", "offset").shape
    torch.Size([5, 5])
    """

    def __init__(
        self,
        num_states: int,
        reach: int,
        heads: Sequence[int],
        temperature: float = 1,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        super().__init__(num_states, 0, heads, temperature, dtype)
        self.reach = reach

    def _width(self, layers: int, name: str) -> int:
        if name == OFFSET:
            return self.reach + 1
        columns = relative_stream(self.num_states, self.reach, self.heads[:layers])[name]
        return int(columns.stop - columns.start)


@lru_cache(maxsize=64)
def relative_stream(num_states: int, reach: int, heads: tuple[int, ...]) -> RelativeStream:
    """Return the stream of these sizes, always the same unchanged object."""
    return RelativeStream(num_states, reach, heads)
