"""The notebooks: saved so that nothing in them is stale, and run (`make docs` executes them too)."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tutorials import TUTORIALS, needs_tools, notebook, run_cells


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_as_it_should_be(path: Path) -> None:
    """Without outputs if `make docs` executes it, with them if it needs the field's tools; a title first."""
    cells = notebook(path)["cells"]
    assert "".join(cells[0]["source"]).startswith("# ")
    shown = any(cell.get("outputs") for cell in cells)
    assert shown == needs_tools(path), (
        f"{path.name}: clear its outputs, or mark it as one for the tools"
    )
    assert not any(
        line.startswith(("%", "!"))
        for cell in cells
        if cell["cell_type"] == "code"
        for line in cell["source"]
    )


def test_the_list_of_tutorials_has_the_titles_of_the_pages() -> None:
    listed = (TUTORIALS[0].parent / "index.md").read_text()
    for number, path in enumerate(TUTORIALS, start=1):
        title = "".join(notebook(path)["cells"][0]["source"]).splitlines()[0]
        title = title.removeprefix(f"# {number}. ")
        assert f"{number}. [{title}]({path.name})" in listed


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in TUTORIALS if not needs_tools(path)], ids=lambda path: path.stem
)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    run_cells(path, tmp_path)
