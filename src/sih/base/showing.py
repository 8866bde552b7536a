"""Display of objects: a short `repr`, facts in HTML in a notebook, and `plot()`.

A class that inherits `Shown` has the first two, for its fields or for the facts of
`_facts`. One that inherits `Drawn` also names its one drawing, which `plot()` returns
and a notebook shows below the facts.
"""

from __future__ import annotations

import base64
import dataclasses
import html
import importlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

LONG, MANY = 72, 8
"""Characters of a value, and numbers of a list, that are shown."""


class Words(str):
    """Words that a record shows without quotes, e.g. a number with its error."""

    def __repr__(self) -> str:
        return str(self)


class Shown:
    """A record with a short repr, and an HTML one."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__repr__" not in vars(cls):
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # in the class itself, because dataclass would write another

    def _facts(self) -> Mapping[str, Any]:
        """Return the object's facts to show, by name (of tensors type and shape)."""
        if not dataclasses.is_dataclass(self):
            return {}
        return {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.repr
        }

    def __repr__(self) -> str:
        try:
            facts = ", ".join(f"{name}={said(value)}" for name, value in self._facts().items())
        except AttributeError:  # an unfinished object, in a debugger
            return object.__repr__(self)
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        pairs = "".join(
            f'<span style="{_FACT}"><span style="opacity:.65">{html.escape(name.replace("_", " "))}</span> '
            f"{html.escape(said(value) if type(value) is not str else _cut(value))}</span>"
            for name, value in self._facts().items()
        )
        title = f'<b style="margin-right:1.2em">{type(self).__name__}</b>'
        return f'<div style="{_BOX}">{title}{pairs}</div>'


class Drawn(Shown):
    """A record with `plot()`, and with that picture in a notebook."""

    drawing: ClassVar[str]
    """The function that draws it, "module:function". Its module is imported when first
    used."""

    def plot(self) -> Any:
        """Return a matplotlib figure of the record, in the style of the paper.

        >>> import sih
        >>> len(sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16).plot().axes) > 0
        True
        """
        return self._draw()

    def _draw(self, **options: Any) -> Any:
        """Return the figure, given further options of its drawing."""
        module, _, function = self.drawing.partition(":")
        return getattr(importlib.import_module(module), function)(self, **options)

    def _repr_html_(self) -> str:
        facts = super()._repr_html_()
        try:
            picture = base64.b64encode(self.plot()._repr_png_()).decode()
        except (ValueError, OSError):  # no drawing, or a file that cannot be read
            return facts
        source = f"data:image/png;base64,{picture}"
        return f'<div>{facts}<img alt="" style="max-width:100%" src="{source}"></div>'


_BOX = "font-size:13px;line-height:1.6"
_FACT = "display:inline-block;margin-right:1.2em"


def said(value: Any) -> str:
    """Return a value in a few words, at most one line.

    >>> import torch
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
    """Return whole words joined within a line, with a note if some are left out."""
    kept = [_cut(word) for word in words[:1]] + list(words[1:])
    while len(kept) > 1 and len(", ".join(kept)) > LONG:
        kept.pop()
    return ", ".join(kept) + (more if len(kept) < count else "")


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 4]} ..."
