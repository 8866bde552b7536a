"""Names of the parts of a residual stream, so that nothing is addressed by its offset.

The disentangled stream starts as two blocks, `token` (one-hot state, width S) and
`position` (one-hot position, width T). A head copies the whole stream it reads: head h
of layer l adds the prefix `l.h/` to the names of all blocks before it.

After layer 1 of a model with heads (1, 3, 1) the stream is token, position, 1.1/token,
1.1/position. The block `2.3/1.1/position` is the output of head 3 in layer 2 for the
positions that layer 1 had gathered. Read from the right, a name is the route of the
information. Layers and heads are counted from 1, as in the paper.
"""

from collections.abc import Sequence
from functools import lru_cache


class ResidualStream:
    r"""The names and columns of the blocks in the residual stream after all of `heads`.

    $h^{(l)} = [h^{(l-1)}, \hat h^{(l,1)}, \dots, \hat h^{(l,H_l)}]$

    >>> stream = ResidualStream(num_states=5, length=10, heads=(1,))
    >>> stream.names
    ('token', 'position', '1.1/token', '1.1/position')
    >>> stream["1.1/position"]
    slice(20, 30, None)
    """

    def __init__(self, num_states: int, length: int, heads: Sequence[int] = ()) -> None:
        routes = [""]
        for layer, count in enumerate(heads, 1):
            routes += [
                f"{layer}.{head}/{route}" for head in range(1, count + 1) for route in routes
            ]
        widths = {"token": num_states, "position": length}
        self.routes = tuple(routes)
        """The routes through heads: every block's name without its last word. A head's
        routes are neighbours."""
        self.names = tuple(route + kind for route in routes for kind in widths)
        self.dim = len(routes) * (num_states + length)
        self._slices: dict[str, slice] = {}
        start = 0
        for name in self.names:
            width = widths[name.rpartition("/")[2]]
            self._slices[name] = slice(start, start + width)
            start += width

    def __getitem__(self, name: str) -> slice:
        """Return the columns of a block."""
        if name not in self._slices:
            raise ValueError(
                f"there is no block {name!r} here; the blocks are {listed(self.names)}"
            )
        return self._slices[name]


@lru_cache(maxsize=64)
def stream_after(num_states: int, length: int, heads: tuple[int, ...]) -> ResidualStream:
    """Return the stream of these sizes, always the same unchanged object.

    (torch.compile follows functions, not classes.)
    """
    return ResidualStream(num_states, length, heads)


def parse_head(name: str, heads: Sequence[int]) -> tuple[int, int]:
    """Return the indices (1, 0) of `"2.1"`, the paper's layer 2 and head 1.

    >>> parse_head("2.1", heads=(1, 3, 1))
    (1, 0)
    """
    known = head_names(heads)
    if name not in known:
        raise ValueError(
            f"there is no head {name!r}; the heads, layer.head counted from 1, are {listed([*known])}"
        )
    return known[name]


def head_names(heads: Sequence[int]) -> dict[str, tuple[int, int]]:
    """Return the indices of each head by its name."""
    return {
        f"{layer + 1}.{head + 1}": (layer, head)
        for layer, count in enumerate(heads)
        for head in range(count)
    }


def listed(names: Sequence[str], most: int = 12) -> str:
    """Return the first of these names, and how many there are if these are not all."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"
