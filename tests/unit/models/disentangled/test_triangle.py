from __future__ import annotations

import pytest
import torch

from sih.models.disentangled.triangle import CoordinateOrder, coordinate_order


@pytest.mark.parametrize(("routes", "time", "count"), [(2, 10, 4), (6, 7, 1), (1, 5, 2), (4, 3, 8)])
def test_every_coordinate_of_the_first_tokens_has_one_place(routes: int, time: int, count: int) -> None:
    states, length = 3, 12
    order = CoordinateOrder(states, length, routes, time, count)
    block = states + length
    wanted = {route * block + c for route in range(routes) for c in (*range(states), *range(states, states + time))}
    assert sorted(order.index.tolist()) == sorted(wanted)
    assert order.index[:states].tolist() == [0, 1, 2]  # the embedding's tokens first, its positions last
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
