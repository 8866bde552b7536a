from __future__ import annotations

import dataclasses

import pytest
from matplotlib.patches import Patch, Rectangle

from sih.construction import head_offsets, least_heads
from sih.experiments import head_counts as figure


def test_drawing_shows_every_offset_once_and_every_index_once() -> None:
    for pattern in (least_heads((1, 3, 4)), head_offsets((1, 2, 7, 9, 10), 3)):
        top, bottom = figure.draw_pattern(pattern).axes
        cells = [_centre(p) for p in top.patches]
        assert all(pattern.colours[x % pattern.period] == y for x, y in cells)
        assert len(cells) == len(set(cells))
        stored = [_centre(p) for p in bottom.patches]
        assert len(stored) == len(set(stored))


def _centre(patch: Patch) -> tuple[int, int]:
    assert isinstance(patch, Rectangle)
    x, y = patch.get_center()
    return round(x), round(y)


def test_figure_counts_every_set() -> None:
    table = figure.compute(dataclasses.replace(figure.config(), largest=6))
    assert sum(table.counts.values()) == 63
    assert table.unsettled == ()
    assert sum(table.by(0).values()) == sum(table.by(1).values()) == 63
    assert all(number <= heads <= span for number, span, heads in table.counts)
    assert len(figure.draw(table).axes) == 2
    with pytest.raises(ValueError, match="at least 1; got 0"):
        figure.compute(figure.Config(largest=0))
