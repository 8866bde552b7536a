"""Public names, flags and printed commands are what they were when the files here were written.

Something new may join them. What is changed or taken away on purpose is written anew: `python -m support.golden FILE`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.golden import FOLDER, MATRIX, asked_by, help_of, public_names

from sih.cli.train_command import command_of
from sih.training.runs.run_names import run_name

NAMES: dict[str, str] = json.loads((FOLDER / "public_names.json").read_text())
HELPS: dict[str, dict[str, str]] = json.loads((FOLDER / "helps.json").read_text())
COMMANDS = [line.split("  ") for line in (FOLDER / "printed_commands.txt").read_text().splitlines()]
SOME = 25
"""Every so many commands are read back in `make test`, all in `make test-all`."""


def test_public_names_have_their_signatures() -> None:
    today = public_names()
    assert {name: today.get(name) for name in NAMES} == NAMES


@pytest.mark.parametrize("words", HELPS)
def test_flags_have_their_defaults_and_help(words: str) -> None:
    today = help_of(words.split())
    assert {flag: today.get(flag) for flag in HELPS[words]} == HELPS[words]


@pytest.fixture
def _matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix of a configuration is printed as P.csv."""
    (tmp_path / "P.csv").write_text("\n".join(",".join(map(str, row)) for row in MATRIX))
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_matrix")
def test_printed_commands_are_read_back() -> None:
    assert_read_back(COMMANDS[::SOME])


@pytest.mark.slow
@pytest.mark.usefixtures("_matrix")
def test_all_printed_commands_are_read_back() -> None:
    assert len(COMMANDS) >= 1000
    assert_read_back(COMMANDS)


def assert_read_back(commands: list[list[str]]) -> None:
    """Assert that each command makes the configuration of its name, for which the same command is printed."""
    wrong = []
    for name, command in commands:
        config = asked_by(command)
        if (run_name(config), command_of(config)) != (name, command):
            wrong.append((command, name, run_name(config), command_of(config)))
    assert wrong == []
