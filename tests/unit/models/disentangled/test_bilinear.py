"""A packed stream's attention, and its gradient, against the dense softmax of h W h^T."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sih.models.disentangled.bilinear import attend, reordered
from sih.models.disentangled.triangle import CoordinateOrder

STATES, LENGTH, ROUTES, TIME, BATCH = 2, 7, 2, 6, 3


def _rows(order: CoordinateOrder, rng: torch.Generator) -> list[Tensor]:
    """What rows may hold: nothing of a position that is later than themselves."""
    rows = []
    for (start, end), width in zip(order.row_blocks, order.widths, strict=True):
        position = order.index[:width] % (STATES + LENGTH) - STATES
        free = position <= torch.arange(start, end)[:, None]
        rows.append(torch.randn(BATCH, end - start, width, generator=rng, dtype=torch.float64) * free)
    return rows


def _dense(W: Tensor, h: list[Tensor], order: CoordinateOrder) -> Tensor:
    held = order.widths[-1]
    stream = torch.cat([torch.nn.functional.pad(rows, (0, held - rows.shape[2])) for rows in h], dim=1)
    stream = torch.cat([stream, torch.eye(TIME, dtype=stream.dtype).expand(BATCH, -1, -1)], dim=2)
    later = torch.ones(TIME, TIME, dtype=torch.bool).triu(1)
    return torch.softmax((stream @ W @ stream.mT).masked_fill(later, -torch.inf), dim=-1)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_attention_and_gradient_equal_the_dense_ones(count: int, rng: torch.Generator) -> None:
    order = CoordinateOrder(STATES, LENGTH, ROUTES, TIME, count)
    size = len(order.index)
    W = torch.randn(size, size, generator=rng, dtype=torch.float64, requires_grad=True)
    h = [rows.requires_grad_() for rows in _rows(order, rng)]
    found, wanted = attend(W, h, order), _dense(W, h, order)
    above = torch.randn(BATCH, TIME, TIME, generator=rng, dtype=torch.float64)
    for part, (start, end) in zip(found, order.row_blocks, strict=True):
        torch.testing.assert_close(part, wanted[:, start:end, :end])
    weighed = [part * above[:, start:end, :end] for part, (start, end) in zip(found, order.row_blocks, strict=True)]
    fast = torch.autograd.grad(torch.stack([part.sum() for part in weighed]).sum(), [W, *h])
    plain = torch.autograd.grad((wanted * above).sum(), [W, *h])
    for ours, theirs in zip(fast, plain, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_reordering_and_its_gradient(rng: torch.Generator) -> None:
    weights = torch.randn(2, 5, 4, generator=rng, dtype=torch.float64, requires_grad=True)
    rows, columns = torch.tensor([3, 0, 4]), torch.tensor([2, 1])
    found = reordered(weights, rows, columns)
    assert torch.equal(found, weights[:, rows][:, :, columns])
    assert torch.equal(reordered(weights, None, columns), weights[:, :, columns])
    assert torch.autograd.gradcheck(lambda w: reordered(w, rows, columns), (weights,))
