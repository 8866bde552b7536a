r"""The equations of the disentangled transformer with a third of the work.

Every part of the stream is a product of attention matrices applied to one-hot vectors.
The part with route c through heads is C_c [e_s, e_i]. Here C_c, a product of lower
triangular matrices, is lower triangular. Hence:

- The position block of the embedding, C = I, is never built: a product with it is a row
  or a column of the weights. The position block of a head's first copy *is* its
  attention.
- Row i of a position block ends at column i. Rows are cut into blocks. The rows of
  block r store the columns of row blocks 0 .. r and nothing else. They multiply the top
  left corner of the weights, in the same order of coordinates (`CoordinateOrder`).
- The readout is linear: the last layer's values are multiplied by it first, and are S
  wide instead of d.

The token block of the embedding stays one-hot. A product with its S columns is a
look-up, and its gradient is a product, too. The gradient of a gather would be a
scatter.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.types import Law, TokenTensor
from sih.models.disentangled.bilinear import CoordinateOrder, attend, coordinate_order, reordered

BLOCK_ROWS, FEWEST_ROWS = 32, 16
"""Approximate and least number of rows in a block. Smaller blocks skip more of the
empty triangle, larger ones multiply faster. Two blocks are better than one if each has
the least number."""

HeadAttention = list[Float[Tensor, "batch _ _"]]
"""One head's attention: one tensor per block of rows, with the keys up to the block's
end."""


def forward(
    tokens: TokenTensor,
    A: Sequence[Float[Tensor, "_ _ _"]],
    readout: Float[Tensor, "state columns"],
    length: int,
    temperature: float,
) -> tuple[Law, list[list[HeadAttention]]]:
    """Return the model's output, and the attention of each layer and head."""
    num_states, time = readout.shape[0], tokens.shape[1]
    count = max(-(-time // BLOCK_ROWS), min(2, time // FEWEST_ROWS))
    order = coordinate_order(num_states, length, 1, time, count)
    token = torch.eye(num_states, dtype=readout.dtype, device=tokens.device)[tokens]
    h = [token[:, start:end].contiguous() for start, end in order.row_blocks]
    attention: list[list[HeadAttention]] = []
    for layer, weights in enumerate(A):
        index = order.index.to(tokens.device)
        W = reordered(weights, index, index) / temperature
        heads = [attend(W_head, h, order) for W_head in W]
        attention.append(heads)
        if layer < len(A) - 1:
            h = _concatenated(h, heads, order)
            order = coordinate_order(
                num_states, length, order.routes * (1 + len(heads)), time, count
            )
    # W_O [h, attention_1 h, ..., attention_H h]: multiply h by the H + 1 parts of W_O first.
    parts = readout.view(num_states, 1 + len(heads), -1).transpose(0, 1).flatten(0, 1)
    W_O = reordered(parts[None], None, index)[0].T
    values = []
    for rows, (start, end), width in zip(h, order.row_blocks, order.widths, strict=True):
        values.append(rows @ W_O[:width] + W_O[order.widths[-1] :][start:end])
    own, *copied = torch.split(torch.cat(values, dim=1), num_states, dim=-1)
    outputs = []
    for block, (start, end) in enumerate(order.row_blocks):
        output = own[:, start:end]
        for head, value in zip(heads, copied, strict=True):
            output = output + head[block] @ value[:, :end]
        outputs.append(output)
    return torch.cat(outputs, dim=1), attention


def whole(blocks: HeadAttention) -> Float[Tensor, "batch time time"]:
    """Return one head's attention as one matrix."""
    time = blocks[-1].shape[-1]
    return torch.cat(
        [torch.nn.functional.pad(rows, (0, time - rows.shape[-1])) for rows in blocks], dim=1
    )


def _concatenated(
    h: list[Float[Tensor, "batch _ _"]], heads: list[HeadAttention], order: CoordinateOrder
) -> list[Float[Tensor, "batch _ _"]]:
    """Return [h, attention_1 h, ..., attention_H h] by blocks of rows.

    The order of coordinates is that of the next layer's stream.
    """
    pieces = [torch.split(rows, order.pieces(block), dim=-1) for block, rows in enumerate(h)]
    # Piece 0 is the tokens. Piece 1 + q is the positions of row block q, absent in earlier rows.
    columns = [torch.cat([piece[0] for piece in pieces], dim=1)]
    columns += [
        torch.cat([piece[1 + q] for piece in pieces[q:]], dim=1)
        for q in range(len(order.row_blocks))
    ]
    result = []
    for block, (_, end) in enumerate(order.row_blocks):
        parts = [pieces[block][0], *(head[block] @ columns[0][:, :end] for head in heads)]
        for q, (start, stop) in enumerate(order.row_blocks[: block + 1]):
            parts.append(pieces[block][1 + q])
            for head in heads:
                parts.append(head[block][:, :, start:stop])
                if order.routes > 1:
                    parts.append(head[block][:, :, start:end] @ columns[1 + q][:, : end - start])
        result.append(torch.cat(parts, dim=-1))
    return result
