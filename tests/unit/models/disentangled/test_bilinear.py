"""A packed stream's attention, and its gradient, against the dense softmax of h W h^T."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sih.models.disentangled.bilinear import CoordinateOrder, attend, coordinate_order, reordered

STATES, LENGTH, ROUTES, TIME, BATCH = 2, 7, 2, 6, 3


def _rows(order: CoordinateOrder, rng: torch.Generator) -> list[Tensor]:
    """What rows may hold: nothing of a position that is later than themselves."""
    rows = []
    for (start, end), width in zip(order.row_blocks, order.widths, strict=True):
        position = order.index[:width] % (STATES + LENGTH) - STATES
        free = position <= torch.arange(start, end)[:, None]
        rows.append(
            torch.randn(BATCH, end - start, width, generator=rng, dtype=torch.float64) * free
        )
    return rows


def _dense(W: Tensor, h: list[Tensor], order: CoordinateOrder) -> Tensor:
    held = order.widths[-1]
    stream = torch.cat(
        [torch.nn.functional.pad(rows, (0, held - rows.shape[2])) for rows in h], dim=1
    )
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
    weighed = [
        part * above[:, start:end, :end]
        for part, (start, end) in zip(found, order.row_blocks, strict=True)
    ]
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


@pytest.mark.parametrize(("routes", "time", "count"), [(2, 10, 4), (6, 7, 1), (1, 5, 2), (4, 3, 8)])
def test_every_coordinate_of_the_first_tokens_has_one_place(
    routes: int, time: int, count: int
) -> None:
    states, length = 3, 12
    order = CoordinateOrder(states, length, routes, time, count)
    block = states + length
    wanted = {
        route * block + c
        for route in range(routes)
        for c in (*range(states), *range(states, states + time))
    }
    assert sorted(order.index.tolist()) == sorted(wanted)
    assert order.index[:states].tolist() == [
        0,
        1,
        2,
    ]  # the embedding's tokens first, its positions last
    assert order.index[-time:].tolist() == [states + i for i in range(time)]


def test_rows_hold_what_lies_before_the_end_of_their_block() -> None:
    """A row of a block has no position later than the block: its first `widths[block]` coordinates are all of it."""
    states, length, routes, time = 2, 9, 3, 8
    order = CoordinateOrder(states, length, routes, time, 3)
    assert order.widths[-1] == len(order.index) - time
    for block, ((_, end), width) in enumerate(zip(order.row_blocks, order.widths, strict=True)):
        held = order.index[:width]
        position = held % (states + length) - states
        assert position.max() < end
        assert sum(order.pieces(block)) == width
        assert int((position >= 0).sum()) == (routes - 1) * end


def test_the_same_sizes_have_the_same_order() -> None:
    assert coordinate_order(3, 9, 2, 5, 2) is coordinate_order(3, 9, 2, 5, 2)
    assert torch.equal(coordinate_order(3, 9, 2, 5, 2).index, CoordinateOrder(3, 9, 2, 5, 2).index)
