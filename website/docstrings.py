"""Docstrings as Markdown: examples become blocks of code, public names links, proofs in plain text stay as typed."""

from __future__ import annotations

import re
from typing import Any

import griffe

import sih

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1 *\S.*)*", flags=re.M)
"""An example and its output, up to an empty line: the lines of a tensor are indented deeper than the first."""
SHAPED = ("Float", "Int", "Bool", "Shaped")
"""What a shape in a string follows."""
NAME = re.compile(r"(?<![\[`])`(?:sih\.)?(\w+)`(?![\]`])")


class Readable(griffe.Extension):
    """Changes each docstring before it is rendered."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value, obj.name, obj.is_module)
        annotations = [getattr(obj, "annotation", None), getattr(obj, "returns", None)]
        for annotation in [
            *annotations,
            *(parameter.annotation for parameter in getattr(obj, "parameters", ())),
        ]:
            keep_shapes(annotation)


def keep_shapes(annotation: Any) -> None:
    """Turn shapes that griffe took for products, "batch *time", into the strings that they are."""
    if isinstance(annotation, griffe.ExprSubscript) and isinstance(
        annotation.slice, griffe.ExprTuple
    ):
        shape = annotation.slice.elements[-1]
        if isinstance(shape, griffe.ExprBinOp) and getattr(annotation.left, "name", "") in SHAPED:
            annotation.slice.elements[-1] = repr(str(shape).replace(" * ", " *"))
    if isinstance(annotation, griffe.Expr):
        for part in annotation.iterate(flat=False):
            if part is not annotation:  # a name's only part is itself
                keep_shapes(part)


def readable(text: str, own: str = "", module: bool = False) -> str:
    """Turn a docstring into Markdown. Past its first paragraph a module's is left as typed, unless it has formulas."""
    first, gap, rest = text.partition("\n\n")
    if module and rest and "$" not in rest:
        return f"{_linked(first, own)}{gap}```text\n{rest}\n```"
    parts = []
    end = 0
    for found in EXAMPLE.finditer(text):
        indent = found[1]
        parts += [
            _linked(text[end : found.start()], own),
            f"{indent}```pycon\n{found[0]}\n{indent}```",
        ]
        end = found.end()
    return "".join([*parts, _linked(text[end:], own)])


def _linked(text: str, own: str) -> str:
    text = re.sub(r"\](\s?)\[", r"]\1\\[", text)  # two brackets in prose are no link
    return NAME.sub(lambda found: _link(found, own), text)


def _link(found: re.Match[str], own: str) -> str:
    name = found[1]
    return f"[{found[0]}][sih.{name}]" if name in sih.__all__ and name != own else found[0]
