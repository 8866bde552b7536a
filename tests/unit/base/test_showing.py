"""Objects show themselves: in a line, and in HTML that is small, escaped and self-contained."""

from __future__ import annotations

import base64
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from jaxtyping import Float
from support.html_reader import HtmlReader
from torch import Tensor

from sih.base.showing import Drawn, Shown, said
from sih.results.style import PaperFigure, paper_figure

HOSTILE = '</div><script>alert("x")</script>&<b>'


@dataclass(frozen=True, eq=False)
class Record(Shown):
    name: str
    numbers: Float[Tensor, "row column"]


def test_a_dataclass_that_inherits_it_says_its_fields_and_no_numbers() -> None:
    record = Record("a", torch.zeros(300, 300))
    assert repr(record) == "Record(name='a', numbers=float32 of shape (300, 300))"


def test_a_repr_of_its_own_stays_and_is_inherited() -> None:
    class Own(Shown):
        def __repr__(self) -> str:
            return "mine"

    @dataclass
    class Below(Own):
        number: int = 3

    assert repr(Own()) == repr(Below()) == "mine"


def test_a_half_made_object_can_be_looked_at() -> None:
    assert "Record" in repr(object.__new__(Record))


def test_html_is_escaped_wherever_text_comes_from() -> None:
    found = HtmlReader(Record(HOSTILE, torch.zeros(2, 2))._repr_html_())
    assert HOSTILE in found.text


@dataclass
class Picture(Drawn):
    """Draws itself by a function of this module."""

    drawing = f"{__name__}:draw_picture"
    name: str = "a"


def draw_picture(data: Picture, title: str = "") -> PaperFigure:
    if not data.name:
        raise ValueError("it has no name")
    with paper_figure(1, 1) as figure:
        figure.suptitle(title or data.name)
    assert isinstance(figure, PaperFigure)
    return figure


def test_a_notebook_shows_the_facts_and_the_picture_of_plot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[draw_picture.__module__])
    shown = Picture("b")
    found = HtmlReader(shown._repr_html_())
    assert "b" in found.text
    source = dict(found.attributes)["src"].removeprefix("data:image/png;base64,")
    assert base64.b64decode(source) == shown.plot()._repr_png_()
    assert shown._draw(title="c").get_suptitle() == "c"


def test_what_cannot_be_drawn_shows_its_facts() -> None:
    shown = HtmlReader(Picture("")._repr_html_())
    assert "Picture" in shown.text
    assert "src" not in dict(shown.attributes)
    with pytest.raises(ValueError, match="it has no name"):
        Picture("").plot()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.123456, "0.1235"),
        (True, "True"),
        (1234567, "1_234_567"),
        ((7,), "(7,)"),
        ([], "[]"),
        ({"a": 1.5}, "{'a': 1.5}"),
        (np.zeros((2, 3), dtype=np.int64), "int64 of shape (2, 3)"),
        (None, "None"),
    ],
)
def test_values_in_words(value: object, words: str) -> None:
    assert said(value) == words


@pytest.mark.parametrize(
    "value", ["x" * 10**5, list(range(10**5)), dict.fromkeys(range(10**5), "y" * 99), (0.1,) * 999]
)
def test_no_value_is_said_at_length(value: object) -> None:
    assert len(said(value)) <= 80
