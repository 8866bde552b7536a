"""Objects that show themselves: a short `repr`, a small page of HTML in a notebook, and `plot()`.

A class that inherits `Shown` has the first two, one that inherits `Drawn` all three. It shows its fields, unless
`_facts` says what is worth knowing, and below them what `_pictures` draws. HTML here stands alone, loads nothing, and
is legible on light and on dark paper: text keeps the notebook's colour, and cells are one colour, more or less of it.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sih.base.errors import plot

BLUE = (30, 136, 229)
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#B7A900", "#888888")
"""The colours of `results/style.py`, the last one grey, for things that are not ordered: lags, states, heads."""
LONG, MANY, FINEST = 72, 8, 256
"""Characters of a value, numbers of a list, and rows of a map that are shown."""


class Words(str):
    """Words that a record shows whole and without quotes, e.g. a number with its error."""

    def __repr__(self) -> str:
        return str(self)


class Shown:
    """Gives a record a short repr, and an HTML one."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # in the class itself, or dataclass writes its own

    def _facts(self) -> Mapping[str, Any]:
        """Give what the object says of itself, by name. Tensors are said by type and shape."""
        if not dataclasses.is_dataclass(self):
            return {}
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.repr
        }

    def _pictures(self) -> Iterable[str]:
        """Give HTML to stand below the facts, from the functions of this module."""
        return ()

    def __repr__(self) -> str:
        try:
            facts = ", ".join(f"{name}={said(value)}" for name, value in self._facts().items())
        except AttributeError:  # half made, in a debugger
            return object.__repr__(self)
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        pairs = "".join(
            f'<span style="{_FACT}"><span style="opacity:.65">{html.escape(name.replace("_", " "))}</span> '
            f"{html.escape(said(value) if type(value) is not str else _cut(value))}</span>"
            for name, value in self._facts().items()
        )
        pictures = "".join(self._pictures())
        below = f'<div style="{_ROW}">{pictures}</div>' if pictures else ""
        return f'<div style="{_BOX}"><b style="margin-right:1.2em">{type(self).__name__}</b>{pairs}{below}</div>'


class Drawn(Shown):
    """Gives a record `plot()` besides. `sih.results.plots.forms` has a function for each."""

    def plot(self) -> Any:
        """Draw it as a matplotlib figure, in the look of the paper's.

        >>> import sih
        >>> len(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16).plot().axes) > 0
        True
        """
        return plot(self)


_BOX = "font-size:13px;line-height:1.6"
_FACT = "display:inline-block;margin-right:1.2em"
_ROW = "display:flex;flex-wrap:wrap;align-items:flex-start;gap:14px;margin-top:6px"
_CELL = "padding:1px 6px;border:0;text-align:left;font-size:12px;white-space:nowrap"


def said(value: Any) -> str:
    """Say a value in a few words, never more than a line.

    >>> said(0.123456789), said((1, 2, 3)), said(torch.zeros(5, 5))
    ('0.1235', '(1, 2, 3)', 'float32 of shape (5, 5)')
    """
    if isinstance(value, Words):
        return str(value)
    if isinstance(value, Tensor | np.ndarray):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, int) and abs(value) >= 10_000 and not isinstance(value, bool):
        return f"{value:_}"
    if type(value) in (tuple, list):
        comma = "," * (len(value) == 1 and type(value) is tuple)
        left, right = "()" if type(value) is tuple else "[]"
        inside = _as_many_as_fit(
            [said(item) for item in value[:MANY]], len(value), f", ... {len(value)} in all"
        )
        return f"{left}{inside}{comma}{right}"
    if type(value) is dict:
        pairs = [f"{said(key)}: {said(item)}" for key, item in list(value.items())[:MANY]]
        return f"{{{_as_many_as_fit(pairs, len(value), ', ...')}}}"
    return _cut(" ".join(repr(value).split()))


def _as_many_as_fit(words: Sequence[str], count: int, more: str) -> str:
    """Join whole words within a line, and say that there are more where some are left out."""
    kept = [_cut(word) for word in words[:1]] + list(words[1:])
    while len(kept) > 1 and len(", ".join(kept)) > LONG:
        kept.pop()
    return ", ".join(kept) + (more if len(kept) < count else "")


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 4]} ..."


def html_table(rows: Sequence[Sequence[str]], title: str = "") -> str:
    """Write a table of text, the first row of which names the columns."""
    lines = []
    for number, row in enumerate(rows):
        tag, look = ("th", f"{_CELL};opacity:.65") if number == 0 else ("td", _CELL)
        lines.append([f'<{tag} style="{look}">{html.escape(cell)}</{tag}>' for cell in row])
    return _figure(title, _table(lines))


def text_lines(lines: Iterable[str]) -> str:
    """Write lines of text."""
    return f'<div style="font-size:12px">{"<br>".join(html.escape(line) for line in lines)}</div>'


def coloured_cells(
    rows: Sequence[Sequence[tuple[str, int]]], title: str = "", labels: Sequence[str] = ()
) -> str:
    """Write cells with a text and a colour of `PALETTE`, by its number modulo 8 or -1 for none, a label by each row."""
    wide, width = (
        max(map(len, labels), default=0),
        max((len(text) for row in rows for text, _ in row), default=0),
    )
    lines = []
    for number, row in enumerate(rows):
        label = html.escape(f"{labels[number]:{wide}} ") if labels else ""
        cells = (
            f'<span style="background:{PALETTE[n % len(PALETTE)]}99">{html.escape(f" {text:>{width}} ")}</span>'
            if n >= 0
            else html.escape(f" {text:>{width}} ")
            for text, n in row
        )
        lines.append(f'<span style="opacity:.65">{label}</span>{"".join(cells)}')
    look = "font-family:monospace;font-size:12px;line-height:1.5;white-space:pre;overflow-x:auto"
    return _figure(title, f'<div style="{look}">{"<br>".join(lines)}</div>')


def heat_map(values: Tensor | np.ndarray, title: str = "", size: int = 150) -> str:
    """Draw a table of numbers from 0 to 1: cells with numbers if they are few, else an image of about `size` pixels.

    The image's darkest is its largest number. Where there are more than 256 rows, a pixel is the largest of several.
    """
    table = np.nan_to_num(
        np.asarray(torch.as_tensor(values).detach().cpu(), dtype=np.float64)
    ).clip(0, 1)
    if max(table.shape) <= MANY:
        return _figure(title, _table([[_level(value) for value in row] for row in table.tolist()]))
    step = -(-max(table.shape) // FINEST)
    padded = np.pad(table, [(0, -side % step) for side in table.shape])
    small = padded.reshape(padded.shape[0] // step, step, -1, step).max(axis=(1, 3))
    encoded = base64.b64encode(
        _png((255 * small / (small.max() or 1)).round().astype(np.uint8))
    ).decode()
    frame = (
        "image-rendering:pixelated;border:1px solid rgba(128,128,128,.5);margin:0;max-width:none"
    )
    scale = max(1, size // small.shape[1])  # a whole number, so that all cells are as wide
    look = f"width:{scale * small.shape[1]}px;height:{max(8, scale * small.shape[0])}px;{frame}"
    return _figure(
        title,
        f'<img alt="{html.escape(title)}" style="{look}" src="data:image/png;base64,{encoded}">',
    )


def line_chart(
    curves: Mapping[str, Sequence[tuple[float, float]]], title: str = "", size: int = 220
) -> str:
    """Draw a few curves of points (x, y) as a small picture, each named beside its end."""
    found = {name: np.array(curve, dtype=float).reshape(-1, 2) for name, curve in curves.items()}
    found = {name: curve[np.isfinite(curve).all(axis=1)] for name, curve in found.items()}
    found = {name: curve for name, curve in found.items() if len(curve)}
    if not found:
        return ""
    points = np.concatenate(list(found.values()))
    low, high = points.min(axis=0), points.max(axis=0)
    lines, height = [], size // 2
    ends: list[tuple[float, float, str]] = []
    for (name, curve), colour in zip(
        found.items(), (PALETTE[0], PALETTE[4], PALETTE[7], PALETTE[2]), strict=False
    ):
        places = (curve - low) / np.where(high > low, high - low, 1)
        path = " ".join(f"{size * x:.1f},{height - 4 - (height - 16) * y:.1f}" for x, y in places)
        last_x, last_y = map(float, path.split(" ")[-1].split(","))
        lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        )
        ends.append((last_y, last_x, name))
    below = float(height)
    for y, x, name in sorted(ends, reverse=True):  # names from below, none on another
        below = min(y + 4, below)
        lines.append(
            f'<text x="{x + 4}" y="{below}" font-size="11" fill="currentColor">{html.escape(name)}</text>'
        )
        below -= 12
    return _figure(title, f'<svg width="{size + 110}" height="{height}">{"".join(lines)}</svg>')


def _figure(title: str, inside: str) -> str:
    heading = f'<div style="font-size:12px;opacity:.65">{html.escape(title)}</div>' if title else ""
    return f"<div>{heading}{inside}</div>"


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = "".join(f'<tr style="background:none">{"".join(cells)}</tr>' for cells in rows)
    return f'<table style="border-collapse:collapse;margin:0;color:inherit">{lines}</table>'


def _level(value: float) -> str:
    red, green, blue = BLUE
    look = f"{_CELL};padding:1px 4px;background:rgba({red},{green},{blue},{0.8 * value:.3f})"
    return f'<td style="{look}">{f"{value:.2f}".removeprefix("0")}</td>'


def _png(levels: np.ndarray) -> bytes:
    """Encode levels 0 to 255 as a PNG of one colour, as opaque as the level: it takes the colour of what is below."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    rows = b"".join(b"\0" + row.tobytes() for row in levels)
    head = struct.pack(
        ">IIBBBBB", levels.shape[1], levels.shape[0], 8, 3, 0, 0, 0
    )  # a palette of 256
    colours = chunk(b"PLTE", bytes(BLUE) * 256) + chunk(b"tRNS", bytes(range(256)))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + colours
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )
