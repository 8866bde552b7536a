"""Orders the coordinates of a triangular stream so that it packs (see `sih.models.disentangled.structured`)."""

from functools import lru_cache

import torch

from sih.models.kernels.causal import row_blocks


class CoordinateOrder:
    """Orders the coordinates of a stream of `routes` through heads, for `time` tokens in `count` blocks of rows.

    First come the token blocks of all routes. Then, row block by row block, come the position blocks of all routes but
    the empty one. Last comes the position block of the embedding, which rows never hold.
    """

    def __init__(self, num_states: int, length: int, routes: int, time: int, count: int) -> None:
        self.row_blocks = row_blocks(time, count)
        self.routes = routes
        self.tokens = routes * num_states
        starts = (num_states + length) * torch.arange(routes)[:, None]
        position = starts + num_states + torch.arange(time)
        pieces = [(starts + torch.arange(num_states)).flatten()]
        pieces += [position[1:, start:end].flatten() for start, end in self.row_blocks]
        self.index = torch.cat([*pieces, position[0]])
        """Where each coordinate is in the paper's order."""
        self.widths = [self.tokens + (routes - 1) * end for _, end in self.row_blocks]
        """How many coordinates the rows of each block hold."""

    def pieces(self, block: int) -> list[int]:
        """Give the widths of the tokens and of each row block's positions, in the rows of a block."""
        return [self.tokens, *((self.routes - 1) * (end - start) for start, end in self.row_blocks[: block + 1])]


@lru_cache(maxsize=64)
def coordinate_order(num_states: int, length: int, routes: int, time: int, count: int) -> CoordinateOrder:
    """Give the same order for the same sizes. It is never changed."""
    return CoordinateOrder(num_states, length, routes, time, count)
