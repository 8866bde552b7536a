"""The tutorial on models of one's own runs with the tools too: none of its cells says that one is missing."""

from __future__ import annotations

import pytest
from support import tutorial_cells

pytestmark = pytest.mark.filterwarnings("ignore")  # of the tools


def test_its_cells_for_the_tools_run() -> None:
    for tool in ("transformer_lens", "nnsight"):
        pytest.importorskip(tool, reason=f"{tool} is not installed (make test-tools)")
    (path,) = [path for path in tutorial_cells.TUTORIALS if path.name.startswith("05")]
    _, solved = tutorial_cells.run(path)
    assert "Right" in solved
