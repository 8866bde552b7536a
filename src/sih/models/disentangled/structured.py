r"""The disentangled transformer without the waste: the dense equations' numbers for a third of their work.

Every part of the stream is a product of attention matrices applied to one-hot vectors: the part that came by
way of heads c is C_c [e_s, e_i], where C_c, a product of lower triangular matrices, is lower triangular.
Hence:

- The position block of the embedding, C = I, is never built: a product with it is a row or a column of the
  weights. The position block of a head's first copy *is* its attention.
- Row i of a position block ends at column i. Positions are cut into runs; the rows of run r hold their
  blocks' columns of runs 0 .. r and nothing else, run after run, so that what they multiply is the top left
  corner of the weights, once the weights' coordinates are put in the same order (`Order`).
- The readout is linear: the last layer's values are multiplied by it first, and are S wide instead of d.

The token block of the embedding stays one-hot: a product with its S columns is a look-up whose gradient is a
product as well, where the gradient of a gather would be a scatter.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.models.disentangled.bilinear import attend, reordered
from sih.models.disentangled.triangle import Order, order

RUN = 32
"""Positions in a run, about: shorter runs skip more of the empty triangle, longer ones multiply faster."""


def forward(
    tokens: Int[Tensor, "batch time"],
    A: Sequence[Float[Tensor, "_ _ _"]],
    readout: Float[Tensor, "state columns"],
    length: int,
    temperature: float,
    attention: list[list[list[Tensor]]] | None = None,
    runs: int | None = None,
) -> Float[Tensor, "batch time state"]:
    """The model's output; the attention of each layer, head and run of rows goes into `attention`, if given."""
    num_states, time = readout.shape[0], tokens.shape[1]
    runs = runs or -(-time // RUN)
    here = order(num_states, length, 1, time, runs)
    token = torch.eye(num_states, dtype=readout.dtype, device=tokens.device)[tokens]
    h = [token[:, start:end].contiguous() for start, end in here.runs]
    for layer, weights in enumerate(A):
        index = here.index.to(tokens.device)
        W = reordered(weights, index, index) / temperature
        heads = [attend(W_head, h, here) for W_head in W]
        if attention is not None:
            attention.append(heads)
        if layer < len(A) - 1:
            h = _concatenated(h, heads, here)
            here = order(num_states, length, here.paths * (1 + len(heads)), time, runs)
    # W_O [h, attention_1 h, ..., attention_H h]: the H + 1 parts of W_O meet h first.
    parts = readout.view(num_states, 1 + len(heads), -1).transpose(0, 1).flatten(0, 1)
    W_O = reordered(parts[None], None, index)[0].T
    values = []
    for rows, (start, end), width in zip(h, here.runs, here.widths, strict=True):
        values.append(rows @ W_O[:width] + W_O[here.widths[-1] :][start:end])
    own, *copied = torch.split(torch.cat(values, dim=1), num_states, dim=-1)
    outputs = []
    for run, (start, end) in enumerate(here.runs):
        output = own[:, start:end]
        for head, value in zip(heads, copied, strict=True):
            output = output + head[run] @ value[:, :end]
        outputs.append(output)
    return torch.cat(outputs, dim=1)


def whole(runs: list[Float[Tensor, "batch _ _"]]) -> Float[Tensor, "batch time time"]:
    """One head's attention in one piece."""
    time = runs[-1].shape[-1]
    return torch.cat([torch.nn.functional.pad(rows, (0, time - rows.shape[-1])) for rows in runs], dim=1)


def _concatenated(
    h: list[Float[Tensor, "batch _ _"]], heads: list[list[Float[Tensor, "batch _ _"]]], here: Order
) -> list[Float[Tensor, "batch _ _"]]:
    """[h, attention_1 h, ..., attention_H h], each run of rows in the order of the stream one layer on."""
    pieces = [torch.split(rows, here.pieces(run), dim=-1) for run, rows in enumerate(h)]
    # Piece 0 is the tokens, piece 1 + q the positions of run q, which rows before run q do not have.
    columns = [torch.cat([piece[0] for piece in pieces], dim=1)]
    columns += [torch.cat([piece[1 + q] for piece in pieces[q:]], dim=1) for q in range(len(here.runs))]
    result = []
    for run, (_, end) in enumerate(here.runs):
        parts = [pieces[run][0], *(head[run] @ columns[0][:, :end] for head in heads)]
        for q, (start, stop) in enumerate(here.runs[: run + 1]):
            parts.append(pieces[run][1 + q])
            for head in heads:
                parts.append(head[run][:, :, start:stop])
                if here.paths > 1:
                    parts.append(head[run][:, :, start:end] @ columns[1 + q][:, : end - start])
        result.append(torch.cat(parts, dim=-1))
    return result
