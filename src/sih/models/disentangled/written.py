r"""A circuit's pass from the blocks that were written, without the zeros between them.

A hand-made matrix A is zero but for a few blocks, and every block of the stream is a product of attention matrices with
the embedding (`sih.models.disentangled.structured`). So the scores of a head are a sum over its written blocks,

$$ S = \sum_{(q,c)} h_q\, A_{q,c}\, h_c^\top, \qquad h_{position} = I, \quad h_{l.h/x} = \mathcal{A}^{(l,h)} h_x, $$

and a circuit of 16 heads at length 256, whose third layer alone would have 80 million weights, is a few matrices of
256 x 256. The numbers are those of `sih.construct`'s model; the tests compare them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


class WrittenBlocks:
    """Blocks by name, made when first asked for; what is never asked for is zero and takes no room."""

    def __init__(self, num_states: int, length: int) -> None:
        self.widths = {"token": num_states, "position": length}
        self.heads: dict[str, dict[tuple[str, str], Tensor]] = {}
        self.readout: dict[str, Tensor] = {}

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]:
        shape = self._width(query), self._width(key)
        return self.heads.setdefault(head, {}).setdefault((query, key), torch.zeros(shape, dtype=torch.float64))

    def readout_block(self, name: str) -> Float[Tensor, "state block"]:
        shape = self.widths["token"], self._width(name)
        return self.readout.setdefault(name, torch.zeros(shape, dtype=torch.float64))

    def _width(self, name: str) -> int:
        return self.widths[name.rpartition("/")[2]]


@dataclass(frozen=True, eq=False)
class LeanPass:
    """What one sequence made of the circuit."""

    attention: dict[str, Float[Tensor, "query key"]]
    """By head, "1.1" first."""
    log_attention: Float[Tensor, "query key"]
    """The last layer's, as logarithms: a weight too small for a number still has one."""
    law: Float[Tensor, "time state"]


def run(blocks: WrittenBlocks, tokens: Int[Tensor, " time"]) -> LeanPass:
    """The dense equations at temperature 1, block by block."""
    time = len(tokens)
    token = torch.eye(blocks.widths["token"], dtype=torch.float64)[tokens]
    later = torch.ones(time, time, dtype=torch.bool).triu(1)
    attention: dict[str, Tensor] = {}
    log_attention = torch.empty(0)

    def content(name: str) -> Tensor:
        head, _, rest = name.partition("/")
        if not rest:
            return token
        return attention[head] if rest == "position" else attention[head] @ content(rest)

    for head in sorted(blocks.heads, key=_order):
        scores = torch.zeros(time, time, dtype=torch.float64)
        for (query, key), A in blocks.heads[head].items():
            rows = A[:time, :time] if query == "position" else content(query) @ A[: time if _wide(query) else None]
            scores += rows[:, :time] if key == "position" else rows[:, : time if _wide(key) else None] @ content(key).T
        log_attention = torch.log_softmax(scores.masked_fill(later, -math.inf), dim=-1)
        attention[head] = log_attention.exp()
    law = sum((content(name) @ W.T for name, W in blocks.readout.items()), torch.zeros_like(token))
    return LeanPass(attention, log_attention, law)


def _order(head: str) -> tuple[int, ...]:
    return tuple(map(int, head.split(".")))


def _wide(name: str) -> bool:
    """Whether the block has a column a position, of which the first `time` are used."""
    return name.endswith("position")
