"""The house keeps to its plan: a name once, a test beside each module, documents that name what is there."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest
from torture.commands import BASE

import sih
from sih.cli import COMMANDS

ROOT = Path(__file__).parents[2]
SOURCE, UNIT = ROOT / "src" / "sih", ROOT / "tests" / "unit"
MODULES = [
    path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if not path.name.startswith("__")
]
ELSEWHERE = {
    "base/types.py": "annotations: tests/conftest.py checks every one of them",
    "results/html_page.py": "report/test_page.py has a page of it",
    "results/plots/profile.py": "drawn with the circuit that has it, in results/plots/test_heads.py",
    "models/fast/second_order.py": "models/test_derivatives.py has the derivatives of every path",
    "cli/figure_flags.py": "test_figure_command.py has the flags",
    "claim/claim_histogram.py": "claim/test_claim_expectations.py has both",
    "paper/errata.py": "test_errata_figure.py: tests/integration has a test_errata.py",
    "results/maps.py": "attention maps are drawn in paper/test_attention_maps.py",
}
"""Modules, and rooms, whose tests are not in a file of their name, and why."""
ELSEWHERE_BY_END = {
    "_figure.py": "drawn, from a file of its data, in the test of its experiment",
    "_panels.py": "drawn there too",
    "_statements.py": "judged in a test of the statements on one subject",
    "contents.py": "joined in report/test_subjects.py",
}
"""The same of files that every subject has."""
OF_MANY = {
    "test_parents_verification.py": "circuits for any parents, verified and changed",
    "test_in_80_columns.py": "listings of several commands, on a terminal of 80 columns",
    "test_words.py": "what all commands print",
    "test_cli.py": "the table of commands, and what all of them share",
    "test_derivatives.py": "first and second derivatives of every path",
    "test_attention_statements.py": "of paper/agreement_statements.py",
    "test_channel_statements.py": "of beyond/evidence_paths/channels_statements.py",
    "test_circuit_statements.py": "of statements on certificates, constructions and heads",
    "test_claim_statements.py": "of all statements of claim/",
    "test_training_statements.py": "of statements on trained models and on scaling",
    "test_held_out.py": "that no run is measured on sequences that it is trained on",
    "test_perfect_models.py": "every rule about trained models, on models that are perfect by definition",
}
"""Tests in a room that are not of one module, and what they are of."""


def test_every_module_has_a_test_of_its_name() -> None:
    missing = [
        str(path) for path in MODULES if not (UNIT / path.parent / f"test_{path.name}").exists()
    ]
    elsewhere = {path for path in missing if path.endswith(tuple(ELSEWHERE_BY_END))}
    elsewhere |= {path for path in missing if {path, path.split("/")[0]} & ELSEWHERE.keys()}
    assert [path for path in missing if path not in elsewhere] == []
    assert all((SOURCE / name).exists() for name in ELSEWHERE)


def test_every_test_of_a_room_is_of_a_module_there() -> None:
    found = [path.relative_to(UNIT) for path in UNIT.glob("*/**/test_*.py")]
    strays = [
        path
        for path in found
        if not (SOURCE / path.parent / path.name.removeprefix("test_")).exists()
    ]
    assert {path.name for path in strays} == OF_MANY.keys()


def test_what_computes_draws_nothing_and_judges_nothing() -> None:
    """matplotlib is imported by what draws alone."""
    for room in ("paper", "claim", "beyond", "results"):
        for path in (SOURCE / room).rglob("*.py"):
            draws = path.stem.endswith(("_figure", "_panels")) or path.stem in ("style", "maps")
            draws = draws or path.parent.name == "plots"
            assert draws or "\nfrom matplotlib" not in path.read_text(), path


def test_no_room_has_a_public_functions_name() -> None:
    """Else importing the one would hide the other."""
    rooms = {path.stem for path in SOURCE.glob("[a-z]*")}
    assert {name for name in rooms if callable(getattr(sih, name, None))} == set()


def test_every_proof_has_its_check_and_every_check_is_slow() -> None:
    proofs = {path.stem for path in (ROOT / "docs" / "proofs").glob("*.md")} - {"index"}
    checks = {
        path.stem.removeprefix("test_"): path
        for path in (ROOT / "tests" / "mathematics").glob("test_*.py")
    }
    assert checks.keys() - {"sharpness"} == proofs  # sharpness is a section of the theorem
    instruments = {path.stem: path for path in (ROOT / "tests" / "instruments").glob("test_*.py")}
    for path in (*checks.values(), *instruments.values()):
        assert "\npytestmark = pytest.mark.slow\n" in path.read_text(), path


PROOFS = sorted(
    path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "proofs").glob("*.md")
)
NAMING = [
    "docs/paper_map.md",
    "docs/architecture.md",
    "docs/report.md",
    "docs/results/claim-1.md",
    "CONTRIBUTING.md",
    *PROOFS,
]


@pytest.mark.parametrize("document", NAMING)
def test_documents_name_what_is_there(document: str) -> None:
    """Names like `sih.room.module.name`, and files of code and tests between backticks."""
    quoted = re.findall(r"`([^`\n]+)`", (ROOT / document).read_text())
    for name in (name for words in quoted for name in re.findall(r"\bsih(?:\.\w+)+", words)):
        pkgutil.resolve_name(name)  # or an error that says what is not there
    folders = [ROOT / "tests", SOURCE, ROOT / "website"]
    for words in quoted:
        file, _, test = words.partition("::")
        if re.fullmatch(r"[\w/]+\.(py|md|js|c)", file) and "NAME" not in file:
            found = (
                ROOT / file,
                *(path for folder in folders for path in (folder / file, *folder.rglob(file))),
            )
            there = [path for path in found if path.exists()]
            assert there, f"{document}: {words}"
            assert not test or f"def {test}(" in there[0].read_text(), f"{document}: {words}"


def test_the_torture_suite_has_a_line_of_every_command() -> None:
    assert sorted(COMMANDS.keys() - BASE.keys()) == []  # tests/torture/commands.py
