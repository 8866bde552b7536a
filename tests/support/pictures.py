"""Data through its file, and figures as bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TypeVar

from matplotlib.figure import Figure

from sih.results import style
from sih.results.record_json import plain, record_from

D = TypeVar("D")


def through_file(data: D) -> D:
    """The data as a file of it gives it back."""
    return record_from(type(data), json.loads(json.dumps(plain(data), allow_nan=False)))


def picture(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with style.paper_style():
        figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


def check_drawn_from_file(draw: Callable[[D], Figure], data: D) -> None:
    """The file holds all that the figure shows."""
    again = through_file(data)
    assert again == data
    assert picture(draw(again)) == picture(draw(data))
