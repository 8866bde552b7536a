"""Links of the repository's documents as links of the site, and names in code font as links into the reference."""

from __future__ import annotations

import re
from collections.abc import Callable
from posixpath import relpath

from website.reference import canonical
from website.repository import PAGES

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(?<![\[`])`(sih(?:\.\w+)+)(\([^`\n]*\))?`(?![\]`])")
LIST = re.compile(r"^((?!- |\d+\. )[^\s|].*\n)(?=- |\d+\. )", flags=re.M)
"""A line of prose right before a list."""
FENCE = re.compile(r"(^ *```.*?^ *```|^#[^\n]*$)", flags=re.S | re.M)
"""What is left alone: blocks of code, and headings."""


def site_links(text: str, source: str, page: str) -> str:
    """Rewrite the links of a document at `source` in the repository, shown at `page` of the site."""
    home = source.rpartition("/")[0]

    def rewritten(found: re.Match[str]) -> str:
        bang, words, target, anchor = found.groups()
        path = _joined(home, target)
        whole = path.partition("/")[0] if path not in PAGES else path
        place = PAGES.get(whole, path.removeprefix("docs/"))
        if path.startswith("examples/") and path.endswith(".py"):
            return f"{bang}[{words}]({relpath(path, page.rpartition('/')[0] or '.')})"
        if path.startswith("docs/tutorials/") and path.endswith(".ipynb"):
            place = place.removesuffix("ipynb") + "md"
        if place == path:  # nothing of the site: CITATION.cff, benchmarks
            return words
        return f"{bang}[{words}]({relpath(place, page.rpartition('/')[0] or '.')}{anchor or ''})"

    return _outside_code(text, lambda part: LINK.sub(rewritten, part))


def linked_names(text: str, known: dict[str, str]) -> str:
    """Link every `sih.name` in code font to its place in the reference, if it has one there.

    `known` says for the path at which a name is defined under which name the reference has it.
    """

    def linked(found: re.Match[str]) -> str:
        name = found[1]
        try:
            path = canonical(name)
        except (AttributeError, ImportError):
            return found[0]
        return f"[{found[0]}][{known[path]}]" if path in known else found[0]

    return _outside_code(text, lambda part: CODE.sub(linked, part))


def spaced(text: str) -> str:
    """Put the empty line before a list that Python's Markdown wants and others do not.

    >>> spaced("Two things:\\n- one\\n- two")
    'Two things:\\n\\n- one\\n- two'
    """
    return _outside_code(text, lambda part: LIST.sub(r"\1\n", part))


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    return "".join(part if FENCE.fullmatch(part) else change(part) for part in FENCE.split(text))


def _joined(home: str, target: str) -> str:
    parts: list[str] = []
    for part in f"{home}/{target}".split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
