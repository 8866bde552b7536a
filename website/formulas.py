"""Formulas, from LaTeX to MathML, which browsers draw themselves: the pages need no script and no network."""

from __future__ import annotations

import re
from html import unescape
from importlib.metadata import distribution
from pathlib import Path

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', flags=re.S)
"""A formula as Markdown's extension `arithmatex` leaves it."""
FONT = Path(str(distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf")))
"""A font with all of mathematics in it, which the pages bring along."""
MEANT = (
    (r"\\arg\b", r"\\operatorname{arg}"),  # latex2mathml does not know it
    (r"\\(mathcal|mathbb|mathbf)\s+(\w)", r"\\\1{\2}"),
    (
        r"\\(log|exp|min|max|cos|sin|tan)\s+(?=[A-Za-z\\])(?!\\(?:left|big|Big|le\b|ge\b|lt\b|gt\b))",
        r"\\\1\\,",
    ),
)
"""What TeX would do by itself: a name it knows, a letter without braces, and the space between log and its argument."""
TIGHT = re.compile(r'<mo( stretchy="false")?>(&#x0007C;|\||&#x0002F;|/)</mo>')
"""Bars and slashes, which browsers would set as far apart as a relation."""


def drawn(page: str) -> str:
    """Put MathML in the place of every formula of a page."""
    return FORMULA.sub(lambda found: mathml(unescape(found[3]), display=found[2] == "["), page)


def mathml(latex: str, display: bool = False) -> str:
    """Turn one formula into MathML, or raise a ValueError that shows what is not understood."""
    said = latex
    for pattern, meant in MEANT:
        said = re.sub(pattern, meant, said)
    try:
        found = convert(said.strip(), display="block" if display else "inline")
    except Exception as error:  # latex2mathml's errors have no base of their own
        raise ValueError(
            f"cannot read the formula {latex!r}: {type(error).__name__} {error}"
        ) from error
    if unknown := re.search(r"<m\w+[^>]*>(\\[A-Za-z]+)", found):
        raise ValueError(f"cannot read the formula {latex!r}: {unknown[1]} is not known")
    return TIGHT.sub(r'<mo\1 lspace="0.06em" rspace="0.06em">\2</mo>', found)
