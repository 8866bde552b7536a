"""Searches the built site in a browser, from its folder without a server.

Run with: python -m website.searched site

Twelve searches each have to show the right page first.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

QUERIES = {
    "install": "installation.html",
    "GPU": "installation.html",
    "cite": "help.html",
    "ablate": "how-to/ablate-and-patch.html",
    "activation patching": "how-to/ablate-and-patch.html",
    "resume": "how-to/resume-and-list-runs.html",
    "how long": "help.html",
    "unsettled": "help.html",
    "train": "how-to/train-your-own.html",
    "diagnose": "how-to/diagnose-a-model.html",
    "TransformerLens": "how-to/use-transformerlens.html",
    "sweep": "how-to/run-a-sweep.html",
}
"""What people search for, and the page that should be first."""
SECONDS = 60
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def first_results(site: Path, queries: list[str]) -> dict[str, str]:
    """Return the page that the search of the site at a folder shows first, for each query."""
    from playwright.sync_api import sync_playwright

    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=browser, args=flags)
        page = launched.new_page()
        found = {query: _first(page, query, site) for query in queries}
        launched.close()
    return found


def _first(page: Any, query: str, site: Path) -> str:
    """Return the first result of a search as a place in the site, or nothing."""
    home = (site.resolve() / "index.html").as_uri()
    page.goto(f"{home}?q={quote(query)}", timeout=1000 * SECONDS)
    summary = page.locator(".md-search-result__meta")
    results = page.locator("a.md-search-result__link")
    seen = ""
    for _ in range(4 * SECONDS):
        page.wait_for_timeout(250)
        shown = results.first.get_attribute("href") if results.count() else ""
        if "matching" in (summary.text_content() or "") and shown == seen:
            break
        seen = shown
    return _place(seen or "", site)


def _place(address: str, site: Path) -> str:
    path = address.partition("?")[0].partition("#")[0]
    return path.removeprefix(f"{site.resolve().as_uri()}/")


def main(arguments: list[str]) -> int:
    """Print each search that shows another page first; return 1 if there is one."""
    site = Path(arguments[0])
    if not any(map(shutil.which, BROWSERS)):
        print(f"{site}: the search was not tried, there is no Chromium here")
        return 0
    found = first_results(site, list(QUERIES))
    wrong = [
        f"{site}: {query!r} shows {found[query] or 'nothing'} first, not {place}"
        for query, place in QUERIES.items()
        if found[query] != place
    ]
    print("\n".join(wrong) or f"{site}: {len(QUERIES)} searches show the right page first")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
