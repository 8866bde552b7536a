"""Notebooks are executed, kept, and shown (run by `make docs`, which has the packages)."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from website import notebooks

PICTURE = "import matplotlib.pyplot as plt\nplt.plot([0, 1]);"
TABLE = "class Table:\n    def _repr_html_(self):\n        return '<table><tr><td>1 &lt; 2</td></tr></table>'\nTable()"


def _saved(folder: Path, *code: str, **metadata: object) -> Path:
    cells = [new_markdown_cell("# A title\n\nWords and $x$."), *map(new_code_cell, code)]
    path = folder / "01_sample.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=metadata), path)
    return path


@pytest.fixture(autouse=True)
def _kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "KEPT", tmp_path / "kept")


def test_outputs_of_each_kind_are_shown(tmp_path: Path) -> None:
    path = _saved(tmp_path, "print('1 < 2')", "40 + 2", PICTURE, TABLE)
    page = notebooks.shown(notebooks.executed([path])[path], path.stem)
    assert page.markdown.startswith('# A title\n\n*A notebook: <a href="01_sample.ipynb" download>')
    assert "```python\n40 + 2\n```" in page.markdown
    outputs = "".join(page.outputs.values())
    assert "<pre>1 &lt; 2</pre>" in outputs
    assert "<pre>42</pre>" in outputs
    assert "<td>1 &lt; 2</td>" in outputs
    assert [(name, picture[:4]) for name, picture in page.pictures.items()] == [
        ("01_sample/1.png", b"\x89PNG")
    ]
    assert "(01_sample/1.png)" in page.markdown
    assert all(place in page.markdown for place in page.outputs)


def test_pictures_are_drawn_whatever_backend_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")  # usual on servers
    path = _saved(tmp_path, PICTURE)
    page = notebooks.shown(notebooks.executed([path])[path], path.stem)
    assert list(page.pictures) == ["01_sample/1.png"]


def test_what_did_not_change_is_not_run_again(tmp_path: Path) -> None:
    path = _saved(tmp_path, "import time; time.time()")
    first, again = (notebooks.executed([path])[path].cells[1].outputs for _ in range(2))
    assert first == again
    other = _saved(tmp_path, "import time; time.time() ")
    assert notebooks.executed([other])[other].cells[1].outputs != first


def test_a_cell_that_fails_fails_the_build(tmp_path: Path) -> None:
    with pytest.raises(CellExecutionError, match="no such thing"):
        notebooks.executed([_saved(tmp_path, "raise ValueError('no such thing')")])
    assert not list(tmp_path.glob("kept/*.ipynb"))


def test_a_notebook_for_the_tools_is_shown_as_saved(tmp_path: Path) -> None:
    path = _saved(tmp_path, "import no_such_package", sih={"set_up": "tools"})
    assert notebooks.executed([path])[path].cells[1].outputs == []
