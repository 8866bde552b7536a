from __future__ import annotations

import json
import re
from pathlib import Path

from matplotlib.figure import Figure

import sih
from sih.results import style

STATIC = Path(sih.__file__).parent / "explorer" / "static"


def test_a_figure_is_saved_in_all_formats_under_its_whole_name_with_the_same_bytes(
    tmp_path: Path,
) -> None:
    def saved(name: str) -> list[Path]:
        with style.paper_style():
            figure = Figure(figsize=(2, 1))
            figure.subplots().plot([1, 2], label="line")
        return style.save(figure, tmp_path / name)

    first, second = saved("standard-1.2.3"), saved("again-1.2.3")
    assert [path.name for path in first] == [
        "standard-1.2.3.pdf",
        "standard-1.2.3.svg",
        "standard-1.2.3.png",
    ]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))


def explorer_colours() -> list[str]:
    """The colours of lags 1 to 8 as the page has them: in colour.js, those that have a name in the style sheet."""
    light, _, _ = (STATIC / "style.css").read_text().partition("@media")
    named = dict(re.findall(r"--([\w-]+): (#\w+);", light))
    found = re.search(r"^const LAGS = (\[.*\]);$", (STATIC / "colour.js").read_text(), flags=re.M)
    assert found is not None
    return [named.get(colour, colour).upper() for colour in json.loads(found[1])]


def test_a_lag_has_one_colour_in_figures_and_the_explorer() -> None:
    assert explorer_colours() == list(style.LAG_COLOURS)
    assert [style.lag_colour(lag) for lag in range(1, 10)] == [
        *style.LAG_COLOURS,
        style.LAG_COLOURS[0],
    ]
    assert len(set(style.LAG_COLOURS)) == 8


def test_lags_of_one_colour_differ_in_their_dashes() -> None:
    assert style.lag_dashes(8) == "-" != style.lag_dashes(9)
    assert style.lag_colour(1) == style.lag_colour(9)
