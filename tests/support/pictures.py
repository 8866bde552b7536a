"""Data through its file, and figures as bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from matplotlib.figure import Figure

from sih.results import style
from sih.results.data import array_bytes, packed, unpacked

D = TypeVar("D")


def through_file(data: D) -> D:
    """The data as its two files give it back."""
    plain, arrays = packed(data)
    with np.load(io.BytesIO(array_bytes(arrays))) as found:
        return unpacked(type(data), json.loads(json.dumps(plain, allow_nan=False)), dict(found))


def same(one: Any, other: Any) -> bool:
    """Tell whether two records hold the same, arrays to the last bit."""
    (plain, arrays), (plain_too, arrays_too) = packed(one), packed(other)
    if (type(one), plain, arrays.keys()) != (type(other), plain_too, arrays_too.keys()):
        return False
    return all(
        np.array_equal(array, arrays_too[name], equal_nan=array.dtype.kind == "f")
        and array.dtype == arrays_too[name].dtype
        for name, array in arrays.items()
    )


def picture(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    with style.paper_style():
        figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


def check_drawn_from_file(draw: Callable[[D], Figure], data: D) -> None:
    """The file holds all that the figure shows."""
    again = through_file(data)
    assert same(again, data)
    assert picture(draw(again)) == picture(draw(data))
