"""One form of the line that installs the project, everywhere, and the set-up that each command asks for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sih.base.errors import INSTALL

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FOLDERS = ("docs", "src", "examples", "website", "benchmarks", "sweeps")
ENDINGS = (".md", ".py", ".ipynb", ".toml", ".txt")
LINE = re.compile(r"""pip install [^`#\n,;)]*?(?:\[\w+\]|\s\.(?=[\s`'"]))[^`#\n\s,;)]*""")
"""A line that installs the project: with an extra in brackets, or the folder itself."""


def files() -> Iterator[Path]:
    yield from (
        path for path in ROOT.glob("*.md") if path.name != "CHANGELOG.md"
    )  # it tells what once was
    for folder in FOLDERS:
        yield from (
            path for path in (ROOT / folder).rglob("*") if path.suffix in ENDINGS and path.is_file()
        )


def test_the_install_line_has_one_form() -> None:
    known = {INSTALL.format(extra=extra) for extra in (*EXTRAS, "{extra}")}
    found = [
        (path.relative_to(ROOT).as_posix(), line)
        for path in files()
        for line in LINE.findall(path.read_text())
    ]
    assert len(found) >= 6
    assert [
        (path, line) for path, line in found if line.replace("\\", "").rstrip('"') not in known
    ] == []
    by_name = [str(path) for path in files() if "selective-induction-heads[" in path.read_text()]
    assert by_name == []


def test_where_the_explorer_is_shown_the_install_line_has_it() -> None:
    for name in ("README.md", "docs/quickstart.md"):
        text = (ROOT / name).read_text()
        assert text.index(INSTALL.format(extra="explorer")) < text.index("`sih explore`"), name


def test_the_main_command_installs_the_package_alone() -> None:
    makefile = (ROOT / "Makefile").read_text()
    package, tests = re.findall(r"^\$\((?:RUNS|STAMP)\): (.*\n(?:\t.*\n)+)", makefile, flags=re.M)
    assert "--editable .\n" in package
    assert "--editable '.[dev]'\n" in tests
    assert tests.startswith("$(RUNS)\n")
    needs = dict(re.findall(r"^([\w-]+): (.+)$", makefile, flags=re.M))
    assert needs["run"] == needs["run-all"] == "$(RUNS)"
    assert needs["test"] == "setup"
    assert needs["setup"] == "$(STAMP)"
