"""What the program prints has the field's words: no string of `src`, no help text has a word of the dialect."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
BANNED = re.compile(
    r"[x×] ML\b|:= mean|\b(?:laws? of the|true law|stationary law|next-token law|looked|carried|donors?|whosever|told|"
    r"moved by|st(?:an|oo)ds? still|keeps? to (?:its|their) parts|so many|unless said|own lag|our recipes?|"
    r"plain(?:ly)? train(?:ed|ing)|go(?:es|ing)? on (?:with|from|where)|command goes on|past a quarter|intact)\b"
)
NAMES = {"looked x carried"}
"""Keys of `EvidenceFlow.channels`, a settled name."""


def strings(path: Path) -> list[tuple[int, str]]:
    """The strings of several words in a module, without docstrings."""
    tree = ast.parse(path.read_text())
    documents = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in documents
        if " " in node.value and node.value not in NAMES
    ]


def test_no_string_of_the_program_has_a_word_of_the_dialect() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {hit[0]!r}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in strings(path)
        for hit in BANNED.finditer(text)
    ]
    assert found == []


def test_no_help_text_has_one_or_shows_how_it_was_made() -> None:
    helps = json.loads((ROOT / "tests/golden/helps.json").read_text())
    texts = [
        (words, f"{flag} {text}") for words, flags in helps.items() for flag, text in flags.items()
    ]
    assert [(words, text) for words, text in texts if BANNED.search(text)] == []
    assert [(words, text) for words, text in texts if "{None" in text or "[INT [" in text] == []


def test_a_word_of_the_dialect_would_be_found() -> None:
    for text in (
        "ends at 1.07 x ML",
        "the true law",
        "steps it stands still",
        "the same command goes on",
    ):
        assert BANNED.search(text)
    assert not BANNED.search("KL/ML 1.07, the true distribution, values and patterns")
