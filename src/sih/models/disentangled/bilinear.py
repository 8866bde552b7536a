r"""Attention of a packed stream, $\mathrm{Softmax}(\mathcal M(h W h^\top))$, and its
gradient.

The rows of h are packed as in `sih.models.disentangled.structured`, in the order of
`CoordinateOrder`. A row stores the coordinates z, but not the one-hot position e_i.
With W split accordingly, row i's score of key j is

    (z_i W_zz + W_ez[i]) . z_j + (z_i W_ze)[j] + W_ee[i, j].

Torch's own gradients of the slices would fill and add whole matrices of zeros. Here
each gradient goes straight to its corner.
"""

from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.models.fast.causal import later_keys, row_blocks
from sih.models.fast.second_order import double_backward


class CoordinateOrder:
    """The order of a packed stream's coordinates.

    It is for `time` tokens in `count` blocks of rows. The stream has `routes` through
    heads. First come the token blocks of all routes. Then, for each block of rows, come
    the position blocks of all routes except the empty one. Last comes the position
    block of the embedding, which rows never store.
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
        """The index of each coordinate in the paper's order."""
        self.widths = [self.tokens + (routes - 1) * end for _, end in self.row_blocks]
        """The number of coordinates that the rows of each block store."""

    def pieces(self, block: int) -> list[int]:
        """Return the widths of the tokens and of each row block's positions, in a
        block's rows.
        """
        return [
            self.tokens,
            *((self.routes - 1) * (end - start) for start, end in self.row_blocks[: block + 1]),
        ]


coordinate_order = lru_cache(maxsize=64)(CoordinateOrder)
"""Returns the same object for the same sizes. It is never changed."""


def attend(
    W: Float[Tensor, "dim dim"], h: list[Float[Tensor, "batch _ _"]], order: CoordinateOrder
) -> list[Float[Tensor, "batch _ _"]]:
    """Return the attention of each block of rows to all keys up to the block's end."""
    return list(_Attend.apply(order, W, *h))  # type: ignore[no-untyped-call]


def reordered(
    weights: Float[Tensor, "head rows columns"],
    rows: Int[Tensor, " row"] | None,
    columns: Int[Tensor, " column"],
) -> Float[Tensor, "head row column"]:
    """Return some rows and columns of every matrix in another order, none twice."""
    rows = torch.arange(weights.shape[1], device=weights.device) if rows is None else rows
    result: Tensor = _Reordered.apply(weights, rows, columns)  # type: ignore[no-untyped-call]
    return result


def _attention(order: CoordinateOrder, W: Tensor, *h: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Return each block's queries and attention."""
    held = order.widths[-1]
    queries, attention = [], []
    for rows, (start, end), width in zip(h, order.row_blocks, order.widths, strict=True):
        query = (rows.flatten(0, 1) @ W[:width, :width]).view_as(rows)
        query += W[held + start : held + end, :width]
        scores = (rows.flatten(0, 1) @ W[:width, held : held + end]).view(*rows.shape[:2], end)
        scores += W[held + start : held + end, held : held + end] + later_keys(start, end, W)
        for keys, (first, last), shared in zip(h, order.row_blocks, order.widths, strict=False):
            if last > end:
                break
            scores[:, :, first:last] += torch.bmm(query[:, :, :shared], keys.mT)
        queries.append(query)
        attention.append(torch.softmax(scores, dim=-1))
    return queries, attention


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, order: CoordinateOrder, W: Tensor, *h: Tensor) -> tuple[Tensor, ...]:
        queries, attention = _attention(order, W, *h)
        ctx.save_for_backward(W, *h, *queries, *attention)
        ctx.order = order
        return tuple(attention)

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor | None, ...]:
        order = ctx.order
        count, held = len(order.row_blocks), order.widths[-1]
        W, *saved = ctx.saved_tensors
        h, queries, attention = saved[:count], saved[count : 2 * count], saved[2 * count :]
        if torch.is_grad_enabled():
            return None, *double_backward(
                lambda *inputs: tuple(_attention(order, *inputs)[1]), (W, *h), above
            )
        grad_W, grad_h = torch.zeros_like(W), [torch.zeros_like(rows) for rows in h]
        for block, ((start, end), width) in enumerate(
            zip(order.row_blocks, order.widths, strict=True)
        ):
            p = attention[block]
            ds = torch._softmax_backward_data(above[block], p, -1, p.dtype)
            grad_query = torch.bmm(ds[:, :, start:end], h[block])
            for n, (first, last) in enumerate(order.row_blocks[: block + 1]):
                shared, part = order.widths[n], ds[:, :, first:last]
                grad_h[n].baddbmm_(part.mT, queries[block][:, :, :shared])
                if n < block:
                    grad_query[:, :, :shared] += torch.bmm(part, h[n])
            rows, ds_rows, query_rows = (
                h[block].flatten(0, 1),
                ds.flatten(0, 1),
                grad_query.flatten(0, 1),
            )
            grad_h[block].flatten(0, 1).addmm_(query_rows, W[:width, :width].T)
            grad_h[block].flatten(0, 1).addmm_(ds_rows, W[:width, held : held + end].T)
            grad_W[:width, :width].addmm_(rows.T, query_rows)
            grad_W[:width, held : held + end].addmm_(rows.T, ds_rows)
            grad_W[held + start : held + end, :width] += grad_query.sum(dim=0)
            grad_W[held + start : held + end, held : held + end] += ds.sum(dim=0)
        return None, grad_W, *grad_h


class _Reordered(torch.autograd.Function):
    """Indexing with a gradient that copies.

    Torch's own gradient adds entry by entry, in case an entry occurs twice. Here none
    does.
    """

    @staticmethod
    def forward(ctx: Any, weights: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        ctx.save_for_backward(rows, columns)
        ctx.shape = weights.shape
        return weights[:, rows[:, None], columns]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, columns = ctx.saved_tensors
        result = grad.new_zeros(ctx.shape)
        result[:, rows[:, None], columns] = grad
        return result, None, None
