"""Attention that knows the offset: the compiled kernel, torch's operations, and the definition by loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from sih.models.fast import compiled
from sih.models.fast.by_offset import (
    attention_by_offset,
    buckets,
    score_by_bucket,
    scores_of_buckets,
    sum_by_bucket,
    values_of_buckets,
)
from sih.models.fast.threads import limited_threads

needs_compiler = pytest.mark.skipif(
    compiled.library() is None, reason="no C compiler on this machine"
)
SIZES = [(1, 0), (1, 3), (2, 1), (5, 0), (5, 1), (9, 3), (9, 8), (9, 9), (9, 20), (10, 6)]
"""Numbers of tokens, and reaches: 0, 1, T - 1, T and beyond."""
Case = tuple[Tensor, Tensor]


def by_loops(qkv: Tensor, r: Tensor, heads: int, qk_dim: int) -> Case:
    """One key of one row of one head at a time. Buckets are by falling offset."""
    (batch, time, columns), reach = qkv.shape, r.shape[-1] // heads - 1
    values = columns // heads - 2 * qk_dim
    output, u = qkv.new_zeros(batch, time, values), torch.zeros_like(r)
    for b in range(batch):
        for h in range(heads):
            for i in range(time):
                q = qkv[b, i, h * qk_dim : (h + 1) * qk_dim]
                places = [h * (reach + 1) + reach - min(i - j, reach) for j in range(i + 1)]
                weights = []
                for j in range(i + 1):
                    k = qkv[b, j, (heads + h) * qk_dim : (heads + h + 1) * qk_dim]
                    weights.append(
                        math.exp(
                            sum(x * y for x, y in zip(q.tolist(), k.tolist(), strict=True))
                            + r[b, i, places[j]]
                        )
                    )
                for j in range(i + 1):
                    first = 2 * heads * qk_dim + h * values
                    share = weights[j] / sum(weights)
                    output[b, i] += share * qkv[b, j, first : first + values]
                    u[b, i, places[j]] += share
    return output, u


def drawn(
    batch: int,
    time: int,
    heads: int,
    qk_dim: int,
    values: int,
    reach: int,
    dtype: torch.dtype = torch.float64,
) -> Case:
    rng = torch.Generator().manual_seed(1000 * time + reach)
    qkv = torch.randn(
        batch, time, heads * (2 * qk_dim + values), generator=rng, dtype=torch.float64
    )
    r = torch.randn(batch, time, heads * (reach + 1), generator=rng, dtype=torch.float64)
    return qkv.to(dtype).requires_grad_(), r.to(dtype).requires_grad_()


def plainly(qkv: Tensor, r: Tensor, heads: int, qk_dim: int) -> Case:
    """The equations in torch, with a gather, for derivatives. It shares no code with the kernel."""
    time, reach = qkv.shape[1], r.shape[-1] // heads - 1
    values = qkv.shape[-1] // heads - 2 * qk_dim
    i = torch.arange(time)
    place = reach - (i[:, None] - i).clamp(0, reach)
    parts = qkv.split([qk_dim] * (2 * heads) + [values] * heads, dim=-1)
    output, sums = qkv.new_zeros(()), []
    for h, bias in enumerate(r.split(reach + 1, dim=-1)):
        scores = (
            torch.einsum("bid,bjd->bij", parts[h], parts[heads + h]) + bias[:, i[:, None], place]
        )
        p = torch.softmax(torch.where(i[:, None] >= i, scores, -torch.inf), dim=-1)
        output = output + torch.einsum("bij,bjd->bid", p, parts[2 * heads + h])
        members = torch.nn.functional.one_hot(place, reach + 1).to(p)
        sums.append(torch.einsum("bij,ijn->bin", p, members))
    return output, torch.cat(sums, dim=-1)


@pytest.mark.parametrize(("time", "reach"), SIZES)
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("blocks", [1, 3])
def test_values_are_those_of_loops(time: int, reach: int, heads: int, blocks: int) -> None:
    qkv, r = drawn(2, time, heads, 3, 4, reach)
    with torch.no_grad():
        expected = by_loops(qkv, r, heads, 3)
        for found in (
            attention_by_offset(qkv, r, heads, 3, blocks=blocks),
            plainly(qkv, r, heads, 3),
        ):
            for x, y in zip(found, expected, strict=True):
                torch.testing.assert_close(x, y, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("time", "reach"), SIZES)
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("blocks", [1, 3])
def test_first_and_second_derivatives(time: int, reach: int, heads: int, blocks: int) -> None:
    def attend(qkv: Tensor, r: Tensor) -> Case:
        return attention_by_offset(qkv, r, heads, 2, blocks=blocks)

    inputs = drawn(1, min(time, 6), heads, 2, 2, reach)
    assert torch.autograd.gradcheck(attend, inputs, nondet_tol=1e-12)
    assert torch.autograd.gradgradcheck(attend, inputs, nondet_tol=1e-12)


@pytest.mark.parametrize(
    ("time", "heads", "reach"),
    [
        (128, 1, 127),
        (128, 2, 16),
        (64, 3, 63),
        (65, 1, 64),
        (129, 1, 70),
        (33, 2, 5),
        (7, 1, 1),
        (70, 1, 0),
        (1, 2, 4),
    ],
)
@pytest.mark.parametrize(
    "how", ["torch, float64", "torch, float32", pytest.param("C", marks=needs_compiler)]
)
def test_derivatives_at_the_sizes_of_models(time: int, heads: int, reach: int, how: str) -> None:
    dtype = torch.float64 if how.endswith("64") else torch.float32
    exact = drawn(3, time, heads, 32, 64, reach)
    inputs = [x.detach().to(dtype).requires_grad_() for x in exact]
    qkv, r = inputs
    expected, found = (
        plainly(*exact, heads, 32),
        attention_by_offset(qkv, r, heads, 32, compiled=how == "C"),
    )
    above = [
        torch.randn(x.shape, generator=torch.Generator().manual_seed(0), dtype=x.dtype)
        for x in expected
    ]
    wanted = torch.autograd.grad(expected, exact, above)
    got = torch.autograd.grad(found, inputs, [x.to(dtype) for x in above])
    limit = 1e-12 if dtype == torch.float64 else 1e-5
    for x, y in zip((*found, *got), (*expected, *wanted), strict=True):
        off = (x.double() - y).abs().max() / y.abs().max().clamp_min(1)
        assert off <= limit
        assert x.dtype == dtype


@needs_compiler
def test_same_bytes_with_the_same_threads_and_the_same_numbers_with_others() -> None:
    qkv, r = drawn(6, 40, 2, 8, 12, 9, torch.float32)

    def run(threads: int, in_c: bool) -> list[Tensor]:
        with limited_threads(threads):
            output, u = attention_by_offset(qkv, r, 2, 8, compiled=in_c)
            total = output.square().sum() + u.square().sum()
            return [output, u, *torch.autograd.grad(total, (qkv, r))]

    for in_c in (False, True):
        once, again, two = run(1, in_c), run(1, in_c), run(2, in_c)
        assert all(torch.equal(x, y) for x, y in zip(once, again, strict=True))
        assert all(torch.equal(x, y) for x, y in zip(two, run(2, in_c), strict=True))
        for x, y in zip(once, two, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


@needs_compiler
def test_a_second_derivative_of_the_compiled_one() -> None:
    qkv, r = drawn(1, 7, 2, 3, 4, 3, torch.float32)
    doubles = [x.detach().double().requires_grad_() for x in (qkv, r)]

    def twice(qkv: Tensor, r: Tensor, in_c: bool) -> tuple[Tensor, ...]:
        output, u = attention_by_offset(qkv, r, 2, 3, compiled=in_c)
        first = torch.autograd.grad(
            output.square().sum() + u.square().sum(), (qkv, r), create_graph=True
        )
        return torch.autograd.grad(first[0].square().sum() + first[1].square().sum(), (qkv, r))

    for x, y in zip(twice(qkv, r, True), twice(doubles[0], doubles[1], False), strict=True):
        torch.testing.assert_close(x.double(), y, rtol=1e-4, atol=1e-4)


def test_buckets_by_rising_offset() -> None:
    attention = torch.softmax(
        torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(0)), dim=-1
    ).tril()
    summed = sum_by_bucket(attention, reach=2)
    assert torch.equal(buckets(6, 2)[5], torch.tensor([2, 2, 2, 2, 1, 0]))
    for i in range(6):
        far = attention[:, i, : max(0, i - 1)].sum(dim=-1)
        torch.testing.assert_close(summed[:, i, 2], far)
        torch.testing.assert_close(summed[:, i, 0], attention[:, i, i])
    r = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(1))
    assert score_by_bucket(r)[1, 4, 3] == r[1, 4, 1]
    assert score_by_bucket(r)[1, 5, 0] == r[1, 5, 2]


@pytest.mark.parametrize(
    ("time", "heads", "width"), [(1, 1, 1), (9, 2, 4), (64, 1, 64), (50, 3, 17), (70, 2, 1)]
)
@pytest.mark.parametrize("how", ["torch", pytest.param("C", marks=needs_compiler)])
def test_products_by_bucket_where_there_are_keys(
    time: int, heads: int, width: int, how: str
) -> None:
    """r = q table^T and u table with their derivatives, for buckets by falling offset of which a row may have a key."""
    rng, n = torch.Generator().manual_seed(time), 21
    table = torch.randn(heads, width, n, generator=rng).requires_grad_()
    x = torch.randn(3, time, heads * n, generator=rng).requires_grad_()
    has_key = torch.arange(time)[:, None] >= width - 1 - torch.arange(width)
    weights = torch.randn(3, time, heads, width, generator=rng) * has_key[:, None]
    weights, above = weights.flatten(2).requires_grad_(), torch.randn(3, time, n, generator=rng)

    expected = torch.einsum("bthn,hwn->bthw", x.unflatten(2, (heads, n)), table) * has_key[:, None]
    found = scores_of_buckets(x, table, compiled=how == "C")
    torch.testing.assert_close(
        found.unflatten(2, (heads, width)) * has_key[:, None], expected, rtol=1e-5, atol=1e-5
    )
    wanted = torch.autograd.grad(expected.flatten(2), (x, table), weights.detach())
    for ours, theirs in zip(
        torch.autograd.grad(found, (x, table), weights.detach()), wanted, strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)

    summed = torch.einsum("bthw,hwn->btn", weights.unflatten(2, (heads, width)), table)
    ours = values_of_buckets(weights, table, compiled=how == "C")
    torch.testing.assert_close(ours, summed, rtol=1e-5, atol=1e-4)
    of_u, of_table = torch.autograd.grad(ours, (weights, table), above)
    want_u, want_table = torch.autograd.grad(summed, (weights, table), above)
    mask = has_key[:, None].expand(-1, heads, -1).flatten(1)
    torch.testing.assert_close(of_u * mask, want_u * mask, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(of_table, want_table, rtol=1e-5, atol=1e-4)


@needs_compiler
def test_products_by_bucket_have_the_same_bytes_with_the_same_threads() -> None:
    rng = torch.Generator().manual_seed(0)
    table = torch.randn(2, 9, 6, generator=rng).requires_grad_()
    x = torch.randn(5, 12, 12, generator=rng).requires_grad_()

    def run(threads: int) -> list[Tensor]:
        with limited_threads(threads):
            r = scores_of_buckets(x, table, compiled=True)
            output = values_of_buckets(r, table, compiled=True)
            return [r, output, *torch.autograd.grad(output.square().sum(), (x, table))]

    for threads in (1, 2):
        assert all(
            torch.equal(ours, again) for ours, again in zip(run(threads), run(threads), strict=True)
        )
    for one, two in zip(run(1), run(2), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-5, atol=1e-4)
