r"""Causal attention with a term for the distance to the key, and its gradient.

    s_ij = q_i . k_j + r_i[b]            b = min(i - j, reach): offsets of `reach` and more share a bucket
    p_i  = Softmax over j <= i
    output_i = sum_j p_ij v_j,  u_i[b] = sum of p_ij over the keys of bucket b

It serves every kind of relative position. With Shaw's vectors r = q a_K^T, and u a_V is
added to the output. A disentangled stream has r = h A and keeps u as a block.

**No gather.** Row i of a (rows, keys) matrix, read from column i - n + 1 to i, has the
offsets n - 1 .. 0. In memory it begins keys + 1 numbers after that of row i - 1. So the
band of the offsets below n is a matrix with this row stride. Where a row of it begins
before column 0, it reads the end of the row before. Those keys are later than that
row's query: their scores are -inf and their attention is 0. Before the first row there
is memory for as many numbers.

**No far bucket.** A constant added to a row changes no softmax. So r_i[reach] is
subtracted from the row, and only the band is left to add. Rows of p sum to 1, and rows
of the scores' gradient to 0. That gives the far bucket of u and of r's gradient.

In r and u each head's buckets are in *falling* order of offset, reach .. 0, so that a
band is read from one end to the other.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sih.models.fast import compiled as library
from sih.models.fast.causal import BLOCK_ROWS, head_parts, later_keys, row_blocks, shared
from sih.models.fast.second_order import double_backward


def attention_by_offset(
    qkv: Float[Tensor, "batch time columns"],
    r: Float[Tensor, "batch time buckets"],
    heads: int,
    qk_dim: int,
    *,
    compiled: bool = False,
    blocks: int | None = None,
) -> tuple[Float[Tensor, "batch time values"], Float[Tensor, "batch time buckets"]]:
    """Return the heads' summed output, and each head's attention by bucket.

    Args:
        qkv: queries, keys and values, [q_1 .. q_H, k_1 .., v_1 ..].
        r: the terms added to the scores, one head after the other, each with reach + 1
            buckets by falling offset.
        heads: H.
        qk_dim: width of queries and keys.
        compiled: whether to use attention.c, for float32 on a CPU, or torch's
            operations.
        blocks: number of blocks of rows. Default: a fast number.
    """
    time, width = qkv.shape[1], r.shape[2] // heads
    blocks = blocks or -(-time // BLOCK_ROWS)
    if width > time:  # buckets without a key in so short a sequence
        near = r.unflatten(-1, (heads, width))[..., width - time :].flatten(-2)
        output, u = attention_by_offset(qkv, near, heads, qk_dim, compiled=compiled, blocks=blocks)
        return output, nn.functional.pad(u.unflatten(-1, (heads, time)), (width - time, 0)).flatten(
            -2
        )
    function = _Compiled if compiled else _ByOffset
    output, u = function.apply(qkv, r, heads, qk_dim, blocks)  # type: ignore[no-untyped-call]
    return output, u


def scores_of_buckets(
    x: Float[Tensor, "batch time columns"],
    table: Float[Tensor, "head bucket n"],
    *,
    compiled: bool = False,
) -> Float[Tensor, "batch time buckets"]:
    """Return r of every head, the product of its n columns of x with its table.

    The table's rows are by falling offset. There are at most as many buckets as rows.
    Buckets in which a row has no key may have any finite number.
    """
    if compiled:
        r: Tensor = _Scores.apply(x, table)  # type: ignore[no-untyped-call]
        return r
    if len(table) == 1:
        return x @ table[0].T
    return torch.cat(
        [part @ one.T for part, one in zip(_by_head(x, len(table)), table, strict=True)], dim=-1
    )


def values_of_buckets(
    u: Float[Tensor, "batch time buckets"],
    table: Float[Tensor, "head bucket n"],
    *,
    compiled: bool = False,
) -> Float[Tensor, "batch time n"]:
    """Return the sum over heads of u times the head's table.

    The rows of a table are by falling offset.
    """
    if compiled:
        output: Tensor = _Values.apply(u, table)  # type: ignore[no-untyped-call]
        return output
    return u @ table.flatten(0, 1)


def buckets(time: int, reach: int) -> Int[Tensor, "query key"]:
    """Return the bucket of each query and key, or offset 0's where the key is later.

    >>> buckets(4, 2)
    tensor([[0, 0, 0, 0],
            [1, 0, 0, 0],
            [2, 1, 0, 0],
            [2, 2, 1, 0]])
    """
    position = torch.arange(time)
    return (position[:, None] - position).clamp(0, reach)


def score_by_bucket(r: Float[Tensor, "batch time bucket"]) -> Float[Tensor, "batch time time"]:
    """Return the terms that r, by rising offset, adds to the scores."""
    batch, time, width = r.shape
    return r.gather(2, buckets(time, width - 1).to(r.device).expand(batch, -1, -1))


def sum_by_bucket(
    attention: Float[Tensor, "batch time time"], reach: int
) -> Float[Tensor, "batch time bucket"]:
    """Return the attention by bucket, by rising offset. Attention to later keys is
    zero.

    >>> sum_by_bucket(torch.tensor([[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]]), reach=1)
    tensor([[[1.0000, 0.0000],
             [0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    batch, time, _ = attention.shape
    index = buckets(time, reach).to(attention.device).expand(batch, -1, -1)
    return attention.new_zeros(batch, time, reach + 1).scatter_add(2, index, attention)


def plain(qkv: Tensor, r: Tensor, heads: int, qk_dim: int) -> tuple[Tensor, Tensor]:
    """Return the result of `attention_by_offset`, computed by the equations."""
    outputs, sums = [], []
    for q, k, v, bias in zip(*head_parts(qkv, heads, qk_dim), _by_head(r, heads), strict=True):
        scores = q @ k.mT + score_by_bucket(bias.flip(-1)) + later_keys(0, qkv.shape[1], qkv)
        p = torch.softmax(scores, dim=-1)
        outputs.append(p @ v)
        sums.append(sum_by_bucket(p, bias.shape[-1] - 1).flip(-1))
    return torch.stack(outputs).sum(dim=0), torch.cat(sums, dim=-1)


def _by_head(x: Tensor, heads: int) -> tuple[Tensor, ...]:
    return tuple(x.unflatten(-1, (heads, x.shape[-1] // heads)).unbind(dim=2))


class _Block(NamedTuple):
    """Rows `start` to `end` - 1, with the keys before `end`. Offsets below `near` have
    a bucket each.
    """

    start: int
    end: int
    near: int

    @property
    def rows(self) -> int:
        return self.end - self.start


def _row_blocks(time: int, reach: int, blocks: int) -> Iterator[_Block]:
    for start, end in row_blocks(time, blocks):
        yield _Block(start, end, min(reach, end))


def _room(block: _Block, like: Tensor) -> tuple[Tensor, Tensor]:
    """Return memory for a (batch, rows, keys) matrix, and the matrix.

    The memory has `rows` more numbers before each sequence's.
    """
    whole = like.new_empty(len(like), block.rows * (block.end + 1))
    return whole, _matrix(whole, block)


def _matrix(whole: Tensor, block: _Block) -> Tensor:
    return whole[:, block.rows :].view(len(whole), block.rows, block.end)


def _band(whole: Tensor, block: _Block) -> Tensor:
    """Return the offsets near - 1 .. 0 of every row, as a view (batch, rows, near)."""
    step = block.end + 1
    first = whole.storage_offset() + block.rows + block.start - block.near + 1
    return whole.as_strided(
        (len(whole), block.rows, block.near), (block.rows * step, step, 1), first
    )


def _add_buckets(whole: Tensor, block: _Block, bias: Tensor) -> Tensor:
    """Add each bucket's term, less the far one's, and return the band."""
    near, rows = _band(whole, block), bias[:, block.start : block.end]
    if block.near:
        near += rows[..., rows.shape[-1] - block.near :] - rows[..., :1]
    whole[:, : block.rows] = 0  # start of the first rows' bands
    return near


def _put(to: Tensor, near: Tensor, far: Tensor) -> None:
    """Fill rows of buckets: the far one, those without a key, and the near ones."""
    first = to.shape[-1] - near.shape[-1]
    to[..., 0] = far
    to[..., 1:first] = 0
    to[..., first:] = near


class _ByOffset(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, r: Tensor, heads: int, qk_dim: int, blocks: int
    ) -> tuple[Tensor, Tensor]:
        q, k, v = head_parts(qkv, heads, qk_dim)
        output, u = qkv.new_empty(*qkv.shape[:2], v[0].shape[-1]), torch.empty_like(r)
        biases, sums, kept = _by_head(r, heads), _by_head(u, heads), []
        reach = biases[0].shape[-1] - 1
        for block in _row_blocks(qkv.shape[1], reach, blocks):
            rows = slice(block.start, block.end)
            later = later_keys(block.start, block.end, qkv)
            for h in range(heads):
                whole, p = _room(block, qkv)
                torch.baddbmm(later, q[h][:, rows], k[h][:, : block.end].mT, out=p)
                near = _add_buckets(whole, block, biases[h])
                torch.softmax(p, dim=-1, out=p)
                if h == 0:
                    torch.bmm(p, v[h][:, : block.end], out=output[:, rows])
                else:
                    output[:, rows] += torch.bmm(p, v[h][:, : block.end])
                _put(sums[h][:, rows], near, 1 - near.sum(dim=-1))
                kept.append(whole)
        ctx.save_for_backward(qkv, r, *kept)
        ctx.sizes = heads, qk_dim, blocks
        return output, u

    @staticmethod
    def backward(ctx: Any, above: Tensor, above_u: Tensor) -> tuple[Tensor | None, ...]:
        qkv, r, *kept = ctx.saved_tensors
        heads, qk_dim, blocks = ctx.sizes
        if torch.is_grad_enabled():
            again = double_backward(
                lambda x, y: plain(x, y, heads, qk_dim), (qkv, r), (above, above_u)
            )
            return *again, None, None, None
        grad_qkv, grad_r = torch.empty_like(qkv), torch.empty_like(r)
        (q, k, v), to_parts = head_parts(qkv, heads, qk_dim), head_parts(grad_qkv, heads, qk_dim)
        biases, to_r = _by_head(above_u, heads), _by_head(grad_r, heads)
        reach = biases[0].shape[-1] - 1
        each_block = list(_row_blocks(qkv.shape[1], reach, blocks))
        for n, block in reversed(
            list(enumerate(each_block))
        ):  # the last block sees all keys: it writes, the others add
            rows, keys = slice(block.start, block.end), slice(block.end)
            for h in range(heads):
                p = _matrix(kept[n * heads + h], block)
                whole, ds = _room(block, qkv)
                torch.bmm(above[:, rows], v[h][:, keys].mT, out=ds)
                near = _add_buckets(whole, block, biases[h])
                ds.sub_((p * ds).sum(dim=-1, keepdim=True)).mul_(p)
                _put(to_r[h][:, rows], near, -near.sum(dim=-1))
                to_q, to_k, to_v = (part[h] for part in to_parts)
                to_q[:, rows] = torch.bmm(ds, k[h][:, keys])
                for to, found in (
                    (to_k, torch.bmm(ds.mT, q[h][:, rows])),
                    (to_v, torch.bmm(p.mT, above[:, rows])),
                ):
                    if n == len(each_block) - 1:
                        to.copy_(found)
                    else:
                        to[:, keys] += found
        return grad_qkv, grad_r, None, None, None


class _Compiled(torch.autograd.Function):
    """attention.c, run on shares of the batch, at most one per thread of torch."""

    @staticmethod
    def forward(
        ctx: Any, qkv: Tensor, r: Tensor, heads: int, qk_dim: int, blocks: int
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(qkv, r)
        ctx.sizes = heads, qk_dim
        both = qkv.contiguous(), r.contiguous()
        output, u = shared(lambda x, y: library.forward(x, y, heads, qk_dim), *both)
        return output, u

    @staticmethod
    def backward(ctx: Any, above: Tensor, above_u: Tensor) -> tuple[Tensor | None, ...]:
        qkv, r = ctx.saved_tensors
        heads, qk_dim = ctx.sizes
        if torch.is_grad_enabled():
            again = double_backward(
                lambda x, y: plain(x, y, heads, qk_dim), (qkv, r), (above, above_u)
            )
            return *again, None, None, None
        arrays = [array.contiguous() for array in (qkv, r, above, above_u)]
        grads = shared(lambda x, y, g, h: library.backward(x, y, g, h, heads, qk_dim), *arrays)
        return *grads, None, None, None


class _Scores(torch.autograd.Function):
    """`scores_of_buckets` in C, without the buckets in which a row has no key."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(x, table)
        table = table.contiguous()
        r: Tensor = shared(lambda part: (library.bucket_scores(part, table),), x.contiguous())[0]
        return r

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        x, table = ctx.saved_tensors
        if torch.is_grad_enabled():
            return double_backward(scores_of_buckets, (x, table), (above,))
        x, table = x.contiguous(), table.contiguous()

        def work(above: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            return library.bucket_values(above, table, False), library.bucket_gradient(
                above, x, table
            )[None]

        grad_x, grad_table = shared(work, above.contiguous(), x)
        return grad_x, grad_table.sum(dim=0)


class _Values(torch.autograd.Function):
    """`values_of_buckets` in C, without the buckets in which a row has no key."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(u, table)
        table = table.contiguous()
        output: Tensor = shared(
            lambda part: (library.bucket_values(part, table, True),), u.contiguous()
        )[0]
        return output

    @staticmethod
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor | None, ...]:
        u, table = ctx.saved_tensors
        if torch.is_grad_enabled():
            return double_backward(values_of_buckets, (u, table), (above,))
        u, table = u.contiguous(), table.contiguous()

        def work(above: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
            return library.bucket_scores(above, table), library.bucket_gradient(u, above, table)[
                None
            ]

        grad_u, grad_table = shared(work, above.contiguous(), u)
        return grad_u, grad_table.sum(dim=0)
