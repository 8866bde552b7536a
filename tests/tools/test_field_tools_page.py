"""The lines of docs/field_tools.md run, one block after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sih.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")  # of the tools
PAGE = (Path(__file__).parents[2] / "docs" / "field_tools.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)


def test_the_page_has_its_blocks() -> None:
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("code", BLOCKS)
def test_a_block_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "lens" in code:
        pytest.importorskip(
            "transformer_lens", reason="TransformerLens is not installed (make test-tools)"
        )
    monkeypatch.chdir(tmp_path)
    assert main(["export", "standard-1.2.3", "--to", "transformer-lens", "--out", "lens"]) == 0
    exec(compile(code, "docs/field_tools.md", "exec"), {})
