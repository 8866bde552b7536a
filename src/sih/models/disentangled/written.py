r"""A disentangled transformer computed from its non-zero blocks.

A constructed matrix A is zero except for a few blocks. Every block of the stream is a
product of attention matrices with the embedding (`sih.models.disentangled.structured`).
So the scores of a head are a sum over its written blocks,

$$ S = \sum_{(q,c)} h_q\, A_{q,c}\, h_c^\top, \qquad h_{position} = I, \quad h_{l.h/x} = \mathcal{A}^{(l,h)} h_x, $$

and a circuit of 16 heads at length 256 is a few matrices of 256 x 256. (Its third layer
alone would have 80 million weights.) Zero blocks take no part, so they would get no
gradient. This backend therefore has no gradients at all.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import TokenTensor
from sih.models.disentangled.blocks import head_names, parse_head, stream_after
from sih.models.disentangled.lazy_trace import LazyValues
from sih.models.fast.causal import mask_later
from sih.models.sites import Trace


class WrittenBlocks:
    """The written blocks of a disentangled transformer.

    All others are zero and use no memory. A block is made at its first use:
    `blocks.block("1.1", "token", "token").copy_(log_P.T)`.
    """

    def __init__(
        self,
        num_states: int,
        length: int,
        heads: Sequence[int],
        temperature: float = 1,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.num_states, self.length, self.heads = num_states, length, tuple(heads)
        self.temperature, self.dtype = temperature, dtype
        self.A: dict[str, dict[tuple[str, str], Tensor]] = {
            name: {} for name in head_names(self.heads)
        }
        """Blocks by head ("1.1" first), then by block of the query and of the key."""
        self.readout: dict[str, Tensor] = {}

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]:
        layer, _ = parse_head(head, self.heads)
        rows, columns = self._width(layer, query), self._width(layer, key)
        return self.A[head].setdefault((query, key), torch.zeros(rows, columns, dtype=self.dtype))

    def readout_block(self, name: str) -> Float[Tensor, "state block"]:
        columns = self._width(len(self.heads), name)
        return self.readout.setdefault(
            name, torch.zeros(self.num_states, columns, dtype=self.dtype)
        )

    def _width(self, layers: int, name: str) -> int:
        columns = stream_after(self.num_states, self.length, self.heads[:layers])[name]
        return int(columns.stop - columns.start)


def run(blocks: WrittenBlocks, tokens: TokenTensor) -> Trace:
    """Return all activations, by name, of the model with only these blocks."""
    batch, time = tokens.shape
    token = torch.eye(blocks.num_states, dtype=blocks.dtype, device=tokens.device)[tokens]
    known: dict[str, Tensor] = {}
    contents = {"token": token}

    def content(name: str) -> Tensor:
        """Return a block of the stream other than `position` (the identity), cut at
        `time` columns.
        """
        if name not in contents:
            head, _, rest = name.partition("/")
            attention = known[f"{head}/attention"]
            contents[name] = attention if rest == "position" else attention @ content(rest)
        return contents[name]

    for head, written in blocks.A.items():
        scores = token.new_zeros(batch, time, time)
        for (query, key), A in written.items():
            rows, columns = (
                time if name.endswith("position") else blocks.num_states for name in (query, key)
            )
            queries = (
                A[:rows, :columns] if query == "position" else content(query) @ A[:rows, :columns]
            )
            scores += queries if key == "position" else queries @ content(key).mT
        known[f"{head}/scores"] = mask_later(scores)
        known[f"{head}/attention"] = torch.softmax(
            known[f"{head}/scores"] / blocks.temperature, dim=-1
        )
    known["output"] = torch.zeros_like(token)
    for name, W in blocks.readout.items():
        known["output"] += (
            W.T[:time] if name == "position" else content(name) @ W.T[: content(name).shape[-1]]
        )
    return Trace(tokens, LazyValues(tokens, blocks.length, blocks.heads, known), blocks.heads)
