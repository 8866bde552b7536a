"""Objects show themselves: in a line, and in HTML that is small, escaped and self-contained."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from jaxtyping import Float
from support.html_reader import HtmlReader
from torch import Tensor

from sih.base.showing import Shown, coloured_cells, heat_map, html_table, line_chart, said

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
    for shown in (
        Record(HOSTILE, torch.zeros(2, 2))._repr_html_(),
        html_table([[HOSTILE], [HOSTILE]], HOSTILE),
        coloured_cells([[(HOSTILE, 1), (HOSTILE, -1)]], HOSTILE, [HOSTILE]),
        heat_map(torch.eye(3), HOSTILE),
        heat_map(torch.eye(30), HOSTILE),
        line_chart({HOSTILE: [(0, 1), (1, 2)]}, HOSTILE),
    ):
        found = HtmlReader(shown)
        assert HOSTILE in found.text or HOSTILE in dict(found.attributes)["alt"]


def test_html_loads_nothing() -> None:
    shown = heat_map(torch.eye(30)) + heat_map(torch.eye(2)) + line_chart({"a": [(0, 1)]})
    assert not re.search("https?:|url\\(|@import", shown)


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


def test_cells_hold_the_numbers() -> None:
    assert HtmlReader(heat_map(torch.tensor([[0.25, 0.75], [1.0, 0.0]]))).text == ".25.751.00.00"


def test_an_image_holds_the_numbers() -> None:
    values = torch.rand(12, 20, generator=torch.Generator().manual_seed(0))
    assert (
        np.abs(_pixels(heat_map(values)) / 255 - (values / values.max()).numpy())
        <= 0.5 / 255 + 1e-6
    ).all()


def test_a_large_image_keeps_its_largest_numbers_and_is_small() -> None:
    values = torch.zeros(1000, 1000)
    values[777, 123] = 1.0
    shown = heat_map(values)
    pixels = _pixels(shown)
    assert pixels.shape == (250, 250)
    assert pixels[777 // 4, 123 // 4] == 255
    assert pixels.sum() == 255
    assert len(shown) < 5000
    assert _pixels(heat_map(torch.rand(513, 257))).shape == (171, 86)


def test_numbers_that_are_none_are_no_error() -> None:
    assert _pixels(heat_map(torch.full((9, 9), torch.nan))).sum() == 0


def test_a_chart_without_points_is_nothing() -> None:
    assert line_chart({}) == line_chart({"a": []}) == ""


def _pixels(shown: str) -> np.ndarray:
    """Decode a PNG of one byte a pixel, by its specification."""
    found = re.search('base64,([^"]+)', shown)
    assert found is not None
    data, at, chunks = base64.b64decode(found[1]), 8, dict[bytes, bytes]()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        size, name = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        chunks[name] = data[at + 8 : at + 8 + size]
        assert zlib.crc32(name + chunks[name]) == int.from_bytes(
            data[at + 8 + size : at + 12 + size]
        )
        at += 12 + size
    width, height = (int.from_bytes(chunks[b"IHDR"][i : i + 4]) for i in (0, 4))
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(
        height, width + 1
    )
    assert (rows[:, 0] == 0).all()
    return rows[:, 1:]
