"""The order of coordinates in which a triangular stream is packed (see `sih.models.disentangled.structured`)."""

from __future__ import annotations

from functools import lru_cache

import torch

from sih.models.kernels.causal import row_blocks


class Order:
    """How the coordinates of a stream of `paths` ways through heads are ordered here, for `time` tokens.

    First the token blocks of all ways; then, run by run of positions, the position blocks of all ways but the
    empty one; last the position block of the embedding, which rows never hold.
    """

    def __init__(self, num_states: int, length: int, paths: int, time: int, runs: int) -> None:
        self.runs = row_blocks(time, runs)
        self.paths = paths
        self.tokens = paths * num_states
        starts = (num_states + length) * torch.arange(paths)[:, None]
        position = starts + num_states + torch.arange(time)
        pieces = [(starts + torch.arange(num_states)).flatten()]
        pieces += [position[1:, start:end].flatten() for start, end in self.runs]
        self.index = torch.cat([*pieces, position[0]])
        """Where each coordinate is in the paper's order."""
        self.widths = [self.tokens + (paths - 1) * end for _, end in self.runs]
        """How many coordinates the rows of each run hold."""

    def pieces(self, run: int) -> list[int]:
        """The widths of the tokens and of each run's positions, in the rows of a run."""
        return [self.tokens, *((self.paths - 1) * (end - start) for start, end in self.runs[: run + 1])]


@lru_cache(maxsize=64)
def order(num_states: int, length: int, paths: int, time: int, runs: int) -> Order:
    return Order(num_states, length, paths, time, runs)
