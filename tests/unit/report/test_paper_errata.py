from __future__ import annotations

import re
from pathlib import Path

from sih.report.paper_errata import ERRATA

ROOT = Path(__file__).parents[3]


def test_the_errata_are_those_of_the_documentation() -> None:
    documented = (ROOT / "docs" / "errata.md").read_text()
    rows = [line for line in documented.splitlines() if re.match(r"\| \d+ \|", line)]
    assert rows == [
        f"| {e.number} | {e.where} | {e.printed} | {e.corrected} | `{e.test}` |" for e in ERRATA
    ]


def test_every_test_named_is_there() -> None:
    for erratum in ERRATA:
        file, name = erratum.test.split("::")
        assert f"def {name}(" in (ROOT / "tests" / file).read_text()
