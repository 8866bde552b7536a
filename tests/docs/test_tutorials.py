"""Every tutorial runs, is stored clean, and its exercise has a check that tells a right answer from none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import tutorial_cells

INDEX = (tutorial_cells.FOLDER / "index.md").read_text()


def test_they_are_numbered_in_a_row() -> None:
    numbers = [int(path.name[:2]) for path in tutorial_cells.TUTORIALS]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 8


@pytest.mark.parametrize("path", tutorial_cells.TUTORIALS, ids=lambda path: path.stem)
def test_it_is_stored_clean_and_listed(path: Path) -> None:
    """Without outputs, which the site makes anew, and without anything of the machine it was written on."""
    notebook = json.loads(path.read_text())
    assert sorted(notebook["metadata"]) == ["kernelspec", "language_info"]
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    title = tutorial_cells.source(notebook["cells"][0]).splitlines()[0]
    assert title.startswith(f"# {int(path.name[:2])}. ")
    assert f"]({path.name})" in INDEX


@pytest.mark.parametrize("path", tutorial_cells.TUTORIALS, ids=lambda path: path.stem)
def test_it_runs_and_its_exercise_is_checked(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    unsolved, solved = tutorial_cells.run(path)
    assert "Not yet" in unsolved
    assert "Right" in solved
    assert "Not yet" not in solved
    assert not list(tmp_path.iterdir())
