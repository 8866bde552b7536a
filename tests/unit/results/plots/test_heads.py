from __future__ import annotations

from matplotlib.patches import Patch, Rectangle

import sih
from sih.heads import head_offsets, least_heads
from sih.results.plots.heads import draw_pattern


def test_drawing_shows_every_offset_once_and_every_index_once() -> None:
    for pattern in (least_heads((1, 3, 4)), head_offsets((1, 2, 7, 9, 10), 3)):
        top, bottom = draw_pattern(pattern).axes
        cells = [_centre(p) for p in top.patches]
        assert all(pattern.colours[x % pattern.period] == y for x, y in cells)
        assert len(cells) == len(set(cells))
        stored = [_centre(p) for p in bottom.patches]
        assert len(stored) == len(set(stored))


def _centre(patch: Patch) -> tuple[int, int]:
    assert isinstance(patch, Rectangle)
    x, y = patch.get_center()
    return round(x), round(y)


def test_circuits_are_drawn_as_their_pattern_or_their_profile() -> None:
    task = sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 2, 3), length=24)
    top, bottom = sih.construct(task, heads=1).circuit.plot().axes
    assert len(top.patches) == 6  # of 16 offsets each third
    assert len(bottom.patches) == 15
    assert len(sih.construct(task, target="bayes").circuit.plot().axes) == 3
