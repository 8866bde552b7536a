"""Causal attention: the compiled kernel, torch's operations, and the definition."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from sih.models.fast import compiled
from sih.models.fast.causal import causal_attention

needs_compiler = pytest.mark.skipif(
    compiled.library() is None, reason="no C compiler on this machine"
)


def by_definition(qkv: Tensor, heads: int, qk_dim: int) -> Tensor:
    """One row of one head at a time."""
    values = qkv.shape[-1] // heads - 2 * qk_dim
    rows = []
    for sequence in qkv:
        for i in range(len(sequence)):
            row = sequence.new_zeros(values)
            for h in range(heads):
                q = sequence[i, h * qk_dim : (h + 1) * qk_dim]
                k = sequence[: i + 1, (heads + h) * qk_dim : (heads + h + 1) * qk_dim]
                first = 2 * heads * qk_dim + h * values
                row = row + torch.softmax(k @ q, dim=0) @ sequence[: i + 1, first : first + values]
            rows.append(row)
    return torch.stack(rows).reshape(*qkv.shape[:2], values)


def with_gradient(
    qkv: Tensor,
    heads: int,
    qk_dim: int,
    above: Tensor,
    *,
    compiled: bool = False,
    blocks: int | None = None,
) -> tuple[Tensor, Tensor]:
    leaf = qkv.clone().requires_grad_()
    output = causal_attention(leaf, heads, qk_dim, compiled=compiled, blocks=blocks)
    (grad,) = torch.autograd.grad(output, leaf, above)
    return output.detach(), grad


@st.composite
def packed(draw: st.DrawFn, max_time: int = 50) -> tuple[Tensor, int, int, Tensor]:
    batch, time = draw(st.integers(1, 3)), draw(st.integers(1, max_time))
    heads, qk_dim, values = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 40)),
        draw(st.integers(1, 70)),
    )
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    scale = draw(st.sampled_from([0.1, 1.0, 3.0]))
    qkv = scale * torch.randn(
        batch, time, heads * (2 * qk_dim + values), generator=rng, dtype=torch.float64
    )
    return qkv, heads, qk_dim, torch.randn(batch, time, values, generator=rng, dtype=torch.float64)


@given(packed(max_time=9), st.integers(1, 4))
def test_torch_operations_are_the_definition(
    case: tuple[Tensor, int, int, Tensor], blocks: int
) -> None:
    qkv, heads, qk_dim, above = case
    leaf = qkv.clone().requires_grad_()
    expected = by_definition(leaf, heads, qk_dim)
    (expected_grad,) = torch.autograd.grad(expected, leaf, above)
    output, grad = with_gradient(qkv, heads, qk_dim, above, blocks=blocks)
    torch.testing.assert_close(output, expected.detach(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(grad, expected_grad, rtol=1e-10, atol=1e-10)


@needs_compiler
@given(packed())
def test_compiled_is_the_same(case: tuple[Tensor, int, int, Tensor]) -> None:
    qkv, heads, qk_dim, above = case
    qkv, above = qkv.float(), above.float()  # the same numbers in both
    output, grad = with_gradient(qkv.double(), heads, qk_dim, above.double())
    quick, quick_grad = with_gradient(qkv, heads, qk_dim, above, compiled=True)
    assert quick.dtype == torch.float32
    for found, expected in ((quick, output), (quick_grad, grad)):
        # scores are sums of up to 40 products: their rounding grows with them, and the softmax with their error
        rounding = (
            2e-6 * (1 + qkv.abs().max().item() ** 2 * qk_dim) * (1 + expected.abs().max().item())
        )
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=rounding)


@needs_compiler
@pytest.mark.parametrize(
    ("time", "heads", "qk_dim", "values"), [(128, 3, 32, 64), (128, 1, 32, 5), (300, 2, 32, 64)]
)
def test_compiled_at_the_papers_sizes(time: int, heads: int, qk_dim: int, values: int) -> None:
    rng = torch.Generator().manual_seed(0)
    qkv = torch.randn(2, time, heads * (2 * qk_dim + values), generator=rng)
    qkv[..., : heads * qk_dim] /= qk_dim**0.5
    above = torch.randn(2, time, values, generator=rng)
    output, grad = with_gradient(qkv.double(), heads, qk_dim, above.double())
    quick, quick_grad = with_gradient(qkv, heads, qk_dim, above, compiled=True)
    torch.testing.assert_close(quick.double(), output, rtol=1e-5, atol=2e-6)
    torch.testing.assert_close(quick_grad.double(), grad, rtol=1e-5, atol=2e-5)


@needs_compiler
@pytest.mark.parametrize("size", [1e3, 1e30])
def test_scores_of_any_size(size: float) -> None:
    """A row that is all but certain, and one whose scores overflow nothing but an exponential without its maximum."""
    qkv = torch.tensor(
        [[[1.0, 1.0, 3.0], [1.0, -size, 5.0], [1.0, -size / 2, 7.0]]]
    )  # q, k, v of one dimension
    output, grad = with_gradient(qkv, 1, 1, torch.ones(1, 3, 1), compiled=True)
    torch.testing.assert_close(output.flatten(), torch.tensor([3.0, 3.0, 3.0]))
    assert torch.isfinite(grad).all()


@needs_compiler
def test_nan_is_kept() -> None:
    qkv = torch.randn(1, 40, 3, generator=torch.Generator().manual_seed(0))
    qkv[0, 20, 1] = torch.nan
    output = causal_attention(qkv, 1, 1, compiled=True)
    assert torch.isfinite(output[0, :20]).all()
    assert torch.isnan(output[0, 20:]).all()


@needs_compiler
def test_threads_change_nothing() -> None:
    rng = torch.Generator().manual_seed(0)
    qkv, above = (
        torch.randn(5, 33, 2 * (2 * 8 + 6), generator=rng),
        torch.randn(5, 33, 6, generator=rng),
    )
    alone = with_gradient(qkv, 2, 8, above, compiled=True)
    allowed = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        together = with_gradient(qkv, 2, 8, above, compiled=True)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(allowed)
    assert torch.equal(alone[0], together[0])
    assert torch.equal(alone[1], together[1])
