"""Causal attention summed over heads, and its gradient.

`compiled` is attention.c (`sih.models.fast.compiled`), for float32 on a CPU. Otherwise
attention is made of torch's operations. Rows are cut into blocks. A block uses only the
keys up to its end, so most of the masked scores are never computed. Everything is a
batched product of views: no head is copied out of the packed queries, keys, values.

A gradient of a gradient (`create_graph=True`) is torch's own, of the same operations.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.models.fast import compiled as library
from sih.models.fast.second_order import double_backward
from sih.models.fast.threads import map_in_threads

BLOCK_ROWS = 64
"""Approximate number of rows in a block. Smaller blocks compute fewer masked scores,
larger ones multiply faster."""


def causal_attention(
    qkv: Float[Tensor, "batch time columns"],
    heads: int,
    qk_dim: int,
    *,
    compiled: bool = False,
    blocks: int | None = None,
) -> Float[Tensor, "batch time values"]:
    r"""Return $\sum_h \mathrm{Softmax}(\mathcal M(q_h k_h^\top))\, v_h$.

    `qkv` is [q_1 .. q_H, k_1 .., v_1 ..].
    """
    blocks = blocks or -(-qkv.shape[1] // BLOCK_ROWS)
    function = _Compiled if compiled else _CausalAttention
    output: Tensor = function.apply(qkv, heads, qk_dim, blocks)  # type: ignore[no-untyped-call]
    return output


def row_blocks(time: int, blocks: int) -> list[tuple[int, int]]:
    """Return at most `blocks` blocks (start, end) of nearly equal length.

    >>> row_blocks(10, 4)
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    blocks = min(blocks, time)
    size, longer = divmod(time, blocks)
    ends = [size * (n + 1) + min(n + 1, longer) for n in range(blocks)]
    return list(zip([0, *ends], ends, strict=False))


def mask_later(scores: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch query key"]:
    """Return the scores with -inf where a key is later than its query."""
    return scores.masked_fill(later_keys(0, scores.shape[-1], scores) < 0, -math.inf)


def later_keys(start: int, end: int, like: Tensor) -> Float[Tensor, "row key"]:
    """Return the causal mask of rows `start` to `end - 1`.

    It is -inf where a key is later than the row, and 0 elsewhere.
    """
    return torch.full((end - start, end), -math.inf, dtype=like.dtype, device=like.device).triu(
        start + 1
    )


def _attend(
    qkv: Float[Tensor, "batch time columns"], heads: int, qk_dim: int, blocks: int
) -> tuple[Float[Tensor, "batch time values"], list[Tensor]]:
    """Return the output by torch's operations, and the attention by block."""
    q, k, v = head_parts(qkv, heads, qk_dim)
    outputs, attention = [], []
    for start, end in row_blocks(qkv.shape[1], blocks):
        mask = later_keys(start, end, qkv)
        total = qkv.new_zeros(0)
        for h in range(heads):
            p = torch.softmax(torch.baddbmm(mask, q[h][:, start:end], k[h][:, :end].mT), dim=-1)
            attention.append(p)
            total = (
                torch.bmm(p, v[h][:, :end]) if h == 0 else torch.baddbmm(total, p, v[h][:, :end])
            )
        outputs.append(total)
    return torch.cat(outputs, dim=1), attention


def head_parts(qkv: Tensor, heads: int, qk_dim: int) -> tuple[tuple[Tensor, ...], ...]:
    """Return the queries, keys and values of each head as views."""
    values = qkv.shape[-1] // heads - 2 * qk_dim
    parts = torch.split(qkv, [qk_dim] * (2 * heads) + [values] * heads, dim=-1)
    return parts[:heads], parts[heads : 2 * heads], parts[2 * heads :]


class _CausalAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: int, qk_dim: int, blocks: int) -> Tensor:
        output, attention = _attend(qkv, heads, qk_dim, blocks)
        ctx.save_for_backward(qkv, *attention)
        ctx.sizes = heads, qk_dim, blocks
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        qkv, *attention = ctx.saved_tensors
        heads, qk_dim, blocks = ctx.sizes
        if torch.is_grad_enabled():
            return (
                *double_backward(lambda x: _attend(x, *ctx.sizes)[0], (qkv,), (grad,)),
                None,
                None,
                None,
            )
        grad_qkv = torch.empty_like(qkv)
        (q, k, v), (grad_q, grad_k, grad_v) = (
            head_parts(qkv, heads, qk_dim),
            head_parts(grad_qkv, heads, qk_dim),
        )
        rows = row_blocks(qkv.shape[1], blocks)
        for n in reversed(
            range(len(rows))
        ):  # the last block sees all keys: it writes, the others add
            start, end = rows[n]
            above = grad[:, start:end]
            for h in range(heads):
                p = attention[n * heads + h]
                # ds = p (dp - sum p dp), torch's own kernel for the gradient of a softmax
                ds = torch._softmax_backward_data(
                    torch.bmm(above, v[h][:, :end].mT), p, -1, p.dtype
                )
                grad_q[h][:, start:end] = torch.bmm(ds, k[h][:, :end])
                to_k, to_v = torch.bmm(ds.mT, q[h][:, start:end]), torch.bmm(p.mT, above)
                if n == len(rows) - 1:
                    grad_k[h].copy_(to_k)
                    grad_v[h].copy_(to_v)
                else:
                    grad_k[h][:, :end] += to_k
                    grad_v[h][:, :end] += to_v
        return grad_qkv, None, None, None


class _Compiled(torch.autograd.Function):
    """attention.c, run on shares of the batch, at most one per thread of torch."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: int, qk_dim: int, blocks: int) -> Tensor:
        ctx.save_for_backward(qkv)
        ctx.sizes = heads, qk_dim, blocks
        output: Tensor = shared(
            lambda x: library.forward(x, None, heads, qk_dim), qkv.contiguous()
        )[0]
        return output

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        (qkv,) = ctx.saved_tensors
        heads, qk_dim, _ = ctx.sizes
        if torch.is_grad_enabled():
            return (
                *double_backward(lambda x: _attend(x, *ctx.sizes)[0], (qkv,), (above,)),
                None,
                None,
                None,
            )
        both = qkv.contiguous(), above.contiguous()
        grads = shared(lambda x, g: library.backward(x, None, g, None, heads, qk_dim), *both)
        return grads[0], None, None, None


def shared(work: Callable[..., tuple[Tensor | None, ...]], *arrays: Tensor) -> tuple[Any, ...]:
    """Return the results for the whole batch, computed on shares in parallel."""
    threads = max(1, min(torch.get_num_threads(), len(arrays[0])))
    if threads == 1:
        return work(*arrays)
    shares = list(zip(*(array.tensor_split(threads) for array in arrays), strict=True))
    found = zip(*map_in_threads(lambda share: work(*share), shares, threads), strict=True)
    return tuple(None if parts[0] is None else torch.cat(parts) for parts in found)
