"""Checks the built site: links and anchors, nothing fetched from elsewhere, formulas drawn, every public name there.

Run with: python -m website.built site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from os.path import normpath
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sih

FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "link": "href",
}
"""What a browser fetches by itself."""
MERELY_SAID = {"canonical", "prev", "next"}
"""Links in a page's head that no browser fetches."""


class Page(HTMLParser):
    """Reads what a page is made of: its anchors, where it links to, what it makes a browser fetch, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.text: list[str] = []
        self._inside: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self._inside = [tag] if tag in ("script", "style", "code", "pre") else self._inside
        self.anchors |= {name for name in (known.get("id"), known.get("name")) if name}
        if tag == "a" and known.get("href"):
            self.links.append(str(known["href"]))
        found = known.get(FETCHED.get(tag, ""))
        if found and known.get("rel") not in MERELY_SAID:
            self.fetched.append(found)
        self.fetched += re.findall(r"url\(([^)]+)\)", known.get("style") or "")

    def handle_endtag(self, tag: str) -> None:
        self._inside = [] if self._inside == [tag] else self._inside

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text.append(data)
        elif self._inside == ["style"]:
            self.fetched += fetched_by_style(data)


def fetched_by_style(css: str) -> list[str]:
    """List what a style sheet makes a browser fetch.

    >>> fetched_by_style('@import "a.css"; b { src: url("c.ttf") }')
    ['a.css', 'c.ttf']
    """
    found = re.findall(r"@import\s+[\"']([^\"']+)|url\([\"']?([^\"')]+)", css)
    return [one or other for one, other in found]


def complaints(site: Path, names: list[str]) -> list[str]:
    """Say what is wrong with the site, a line each."""
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = [
        said
        for path, page in pages.items()
        if path.name != "404.html"
        for said in _broken(path, page, pages)
    ]
    for path in sorted(site.rglob("*.css")):
        found += [
            f"{path}: fetches {target}"
            for target in fetched_by_style(path.read_text())
            if _elsewhere(target)
        ]
    for path, page in pages.items():
        found += [f"{path}: fetches {target}" for target in page.fetched if _elsewhere(target)]
        formulas = re.findall(r"\\\(.+?\\\)|\\\[.+?\\\]|\$\\?\w[^$\n]*\$", "".join(page.text))
        found += [f"{path}: the formula {formula} is not drawn" for formula in formulas]
    anchors = set().union(
        *(page.anchors for path, page in pages.items() if path.parent.name == "reference")
    )
    found += [
        f"sih.{name} is not in the reference" for name in names if f"sih.{name}" not in anchors
    ]
    return found


def _broken(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    found = []
    for link in [*page.links, *page.fetched]:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = Path(normpath(path.parent / unquote(parts.path))) if parts.path else path
        if target not in pages and not target.exists():
            found.append(f"{path}: {link} leads nowhere")
        elif (
            parts.fragment
            and target in pages
            and unquote(parts.fragment) not in pages[target].anchors
        ):
            found.append(f"{path}: {link} has no such anchor")
    return found


def _elsewhere(target: str) -> bool:
    return target.startswith(("http:", "https:", "//"))


if __name__ == "__main__":
    said = complaints(Path(sys.argv[1]), sih.__all__)
    print(
        "\n".join(said)
        or f"{sys.argv[1]}: links, anchors, formulas and {len(sih.__all__)} public names are in order"
    )
    sys.exit(1 if said else 0)
