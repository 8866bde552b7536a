"""Which function draws which data."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sih import figures
from sih.figures.claim_panels import draw_claim_histogram
from sih.figures.gallery import all_forms

SECOND = """
from matplotlib.figure import Figure
from sih.experiments.claim_expectations import ClaimMargins

def draw_least_gaps(data: ClaimMargins) -> Figure:
    return Figure()
"""


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="forms are told by type: the second takes the first's place",
)
def test_one_experiments_data_may_be_drawn_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second drawing is a file more, and the first stays."""
    (tmp_path / "second_form.py").write_text(SECOND)
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    try:
        drawings = {draw.__name__ for draw in all_forms().values()}
    finally:
        sys.modules.pop("sih.figures.second_form", None)
    assert {draw_claim_histogram.__name__, "draw_least_gaps"} <= drawings
