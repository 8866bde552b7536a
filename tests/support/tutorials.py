"""The notebooks of docs/tutorials, as code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.ipynb"))


def notebook(path: Path) -> Any:
    return json.loads(path.read_text())


def needs_tools(path: Path) -> bool:
    """Tell whether a notebook needs the field's tools, which have a set-up of their own."""
    return bool(notebook(path)["metadata"].get("sih", {}).get("set_up") == "tools")


def run_cells(path: Path, folder: Path) -> None:
    """Run the cells of a notebook, one after the other, in a process of their own."""
    cells = [cell for cell in notebook(path)["cells"] if cell["cell_type"] == "code"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells)
    env = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
