from __future__ import annotations

from sih.results.tables import braces, with_error


def test_numbers_of_tables() -> None:
    assert with_error(0.01281, 0.0003) == "0.0128±0.0003"
    assert with_error(-0.5, 10.25) == "-0.5000±10.2500"


def test_lag_sets() -> None:
    assert braces((1, 3, 4)) == "{1,3,4}"
