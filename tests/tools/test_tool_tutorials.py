"""The notebooks that need the field's tools run."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.tutorials import TUTORIALS, needs_tools, run_cells


@pytest.mark.parametrize(
    "path", [path for path in TUTORIALS if needs_tools(path)], ids=lambda path: path.stem
)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    run_cells(path, tmp_path)
