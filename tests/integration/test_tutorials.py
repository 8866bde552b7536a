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
    assert shown == needs_tools(path), f"{path.name}: clear its outputs, or mark it as one for the tools"
    assert not any(
        line.startswith(("%", "!")) for cell in cells if cell["cell_type"] == "code" for line in cell["source"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in TUTORIALS if not needs_tools(path)], ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    run_cells(path, tmp_path)
