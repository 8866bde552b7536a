"""Computes causal attention summed over heads, and its gradient.

In float32 on a CPU it is attention.c, if it can be compiled (`sih.models.kernels.compiled`). Otherwise it is made of
torch's operations. Rows are taken in blocks: a block sees only the keys up to its end, so that most of what the mask
would remove is never computed. Everything is a batched product of views: no head is copied out of the packed queries,
keys, values.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from sih.models.kernels import compiled
from sih.models.kernels.threads import side_by_side

BLOCK_ROWS = 64
"""Rows in a block, about: smaller blocks compute less that the mask removes, larger ones multiply faster."""


def causal_attention(
    qkv: Float[Tensor, "batch time columns"], heads: int, qk_dim: int, blocks: int | None = None
) -> Float[Tensor, "batch time values"]:
    r"""Compute $\sum_h \mathrm{Softmax}(\mathcal M(q_h k_h^\top))\, v_h$, `qkv` being [q_1 .. q_H, k_1 .., v_1 ..]."""
    if blocks is None and compiled.wanted(qkv):
        output: Tensor = _Compiled.apply(qkv, heads, qk_dim)  # type: ignore[no-untyped-call]
    else:
        output = _CausalAttention.apply(qkv, heads, qk_dim, blocks or -(-qkv.shape[1] // BLOCK_ROWS))  # type: ignore[no-untyped-call]
    return output


def row_blocks(time: int, blocks: int) -> list[tuple[int, int]]:
    """Cut `time` rows into at most `blocks` blocks of nearly equal length, as (start, end).

    >>> row_blocks(10, 4)
    [(0, 3), (3, 6), (6, 8), (8, 10)]
    """
    blocks = min(blocks, time)
    size, longer = divmod(time, blocks)
    ends = [size * (n + 1) + min(n + 1, longer) for n in range(blocks)]
    return list(zip([0, *ends], ends, strict=False))


def mask_later(scores: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch query key"]:
    """Put -inf where a key is later than its query."""
    return scores.masked_fill(later_keys(0, scores.shape[-1], scores) < 0, -math.inf)


def later_keys(start: int, end: int, like: Tensor) -> Float[Tensor, "row key"]:
    """Make the causal mask of rows `start` to `end - 1`: -inf where a key is later than the row, else 0."""
    return torch.full((end - start, end), -math.inf, dtype=like.dtype, device=like.device).triu(start + 1)


class _CausalAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: int, qk_dim: int, blocks: int) -> Tensor:
        values = qkv.shape[-1] // heads - 2 * qk_dim
        sizes = [qk_dim] * (2 * heads) + [values] * heads
        parts = torch.split(qkv, sizes, dim=-1)
        q, k, v = parts[:heads], parts[heads : 2 * heads], parts[2 * heads :]
        output = qkv.new_empty(*qkv.shape[:2], values)
        attention = []
        for start, end in row_blocks(qkv.shape[1], blocks):
            mask = later_keys(start, end, qkv)
            total = qkv.new_empty(0)
            for h in range(heads):
                scores = torch.baddbmm(mask, q[h][:, start:end], k[h][:, :end].mT)
                p = torch.softmax(scores, dim=-1)
                attention.append(p)
                total = torch.bmm(p, v[h][:, :end]) if h == 0 else total.baddbmm_(p, v[h][:, :end])
            output[:, start:end] = total
        ctx.save_for_backward(qkv, *attention)
        ctx.heads, ctx.sizes, ctx.blocks = heads, sizes, blocks
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        qkv, *attention = ctx.saved_tensors
        heads = ctx.heads
        parts, grad_qkv = torch.split(qkv, ctx.sizes, dim=-1), torch.empty_like(qkv)
        q, k, v = parts[:heads], parts[heads : 2 * heads], parts[2 * heads :]
        grads = torch.split(grad_qkv, ctx.sizes, dim=-1)
        grad_q, grad_k, grad_v = grads[:heads], grads[heads : 2 * heads], grads[2 * heads :]
        rows = row_blocks(qkv.shape[1], ctx.blocks)
        for n in reversed(range(len(rows))):  # the last block sees all keys: it writes, the others add
            start, end = rows[n]
            above = grad[:, start:end]
            for h in range(heads):
                p = attention[n * heads + h]
                # ds = p (dp - sum p dp), torch's own kernel for the gradient of a softmax
                ds = torch._softmax_backward_data(torch.bmm(above, v[h][:, :end].mT), p, -1, p.dtype)
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
    """Runs attention.c on shares of the batch, one for each thread that torch may use."""

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, heads: int, qk_dim: int) -> Tensor:
        shares = qkv.contiguous().tensor_split(max(1, min(torch.get_num_threads(), qkv.shape[0])))
        found = list(side_by_side(lambda share: compiled.forward(share, heads, qk_dim), shares, len(shares)))
        ctx.save_for_backward(*shares, *(attention for _, attention in found))
        ctx.qk_dim = qk_dim
        return torch.cat([output for output, _ in found]) if len(found) > 1 else found[0][0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        half = len(ctx.saved_tensors) // 2
        shares, attention = ctx.saved_tensors[:half], ctx.saved_tensors[half:]
        parts = list(zip(shares, attention, above.tensor_split(half), strict=True))
        grads = list(side_by_side(lambda part: compiled.backward(*part, ctx.qk_dim), parts, half))
        return torch.cat(grads) if half > 1 else grads[0], None, None
