"""The limits of strengths that may be asked for."""

from __future__ import annotations

import math

from sih.circuits.strengths import LARGEST, Strong


def test_strengths_are_positive_and_leave_digits() -> None:
    plain, limit = Strong(), Strong(infinite=True)
    for inside in (1e-300, 1.0, LARGEST):
        assert inside in plain
        assert inside in limit
    for outside in (0.0, -1.0, 2 * LARGEST, math.nan):
        assert outside not in plain
        assert outside not in limit
    assert math.inf not in plain
    assert math.inf in limit
    assert 11.0 not in Strong(most=10)


def test_what_is_wanted_is_said() -> None:
    assert Strong().wanted("a number") == "a number greater than 0, at most 1e+15"
    assert Strong(infinite=True).wanted("a number").endswith("at most 1e+15, or inf for the limit")
