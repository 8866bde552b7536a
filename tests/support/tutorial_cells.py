"""Runs the code of a tutorial, cell by cell, and its exercise twice: as it stands, and as its answer says."""

from __future__ import annotations

import io
import json
import linecache
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
TUTORIALS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    """Read the cells of a notebook."""
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


def source(cell: dict[str, Any]) -> str:
    """Give the text of a cell."""
    return "".join(cell["source"])


def tagged(path: Path, tag: str) -> list[int]:
    """List the places of the cells that have the tag, `exercise` or `check`."""
    return [
        place for place, cell in enumerate(cells(path)) if tag in cell["metadata"].get("tags", ())
    ]


def answers(path: Path) -> list[str]:
    """Give the code of every folded answer."""
    written = "\n".join(source(cell) for cell in cells(path) if cell["cell_type"] == "markdown")
    return re.findall(
        r"<details><summary>An answer</summary>.*?```python\n(.*?)```.*?</details>",
        written,
        flags=re.S,
    )


def run(path: Path) -> tuple[str, str]:
    """Run all code, and return what the check says of the exercise as it stands and of its answer."""
    names: dict[str, Any] = {"__name__": "__main__"}
    (exercise,), (check,), (answer,) = (
        tagged(path, "exercise"),
        tagged(path, "check"),
        answers(path),
    )
    said: list[str] = []
    for place, cell in enumerate(cells(path)):
        if cell["cell_type"] != "code":
            continue
        printed = _printed(source(cell), f"{path.name}, cell {place + 1}", names)
        if place == check:
            assert exercise == check - 1
            _printed(answer, f"{path.name}, answer", names)
            said += [printed, _printed(source(cell), f"{path.name}, check of the answer", names)]
    first, second = said
    return first, second


def _printed(code: str, name: str, names: dict[str, Any]) -> str:
    said = io.StringIO()
    linecache.cache[name] = (
        len(code),
        None,
        code.splitlines(keepends=True),
        name,
    )  # nnsight reads the lines it runs
    with redirect_stdout(said):
        exec(compile(code, name, "exec"), names)
    return said.getvalue()
