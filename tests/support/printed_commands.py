"""The commands and the lines of Python that documents print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.S | re.M)


def blocks(document: Path, *languages: str) -> list[str]:
    """List the blocks of code in these languages."""
    return [code for language, code in BLOCK.findall(document.read_text()) if language in languages]


def in_prose(document: Path) -> list[str]:
    """List what stands between backticks outside blocks, each in one line."""
    return [
        " ".join(words.split())
        for words in re.findall(r"`([^`]+)`", BLOCK.sub("", document.read_text()))
    ]


def commands(document: Path) -> list[list[str]]:
    """List the `sih` commands of a document, each as its words without `sih`: those in blocks, then those in prose."""
    shown = [
        line
        for code in blocks(document, "sh", "")
        for line in code.replace("\\\n", " ").splitlines()
    ]
    said = [
        line.strip() for line in (*shown, *in_prose(document)) if line.strip().startswith("sih ")
    ]
    return [shlex.split(line, comments=True)[1:] for line in dict.fromkeys(said)]


def is_whole(words: list[str]) -> bool:
    """Tell whether a command can be run as printed: nothing is left out, and no word stands for another.

    >>> is_whole(["heads", "--lags", "1"]), is_whole(["figure", "NAME"]), is_whole(["heads", "--lags", "..."])
    (True, False, False)
    """
    return not any(re.search(r"^\.\.\.$|^[A-Z]{3,}$|[\[\]…]", word) for word in words)
