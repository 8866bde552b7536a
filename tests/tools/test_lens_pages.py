"""The lines of the how-tos on TransformerLens and hooks run, one block after the other."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from sih.cli import main

pytestmark = pytest.mark.filterwarnings("ignore")  # of the tools
HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PACKAGES = {"use-transformerlens": "transformer_lens", "use-pytorch-hooks": "nnsight"}
"""The pages, and the package that each needs."""


@pytest.mark.parametrize("page", PACKAGES)
def test_the_blocks_of_a_page_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(PACKAGES[page], reason="it is not installed (make test-tools)")
    codes = re.findall(r"```python\n(.*?)```", (HOW_TO / f"{page}.md").read_text(), flags=re.S)
    assert len(codes) >= 2
    monkeypatch.chdir(tmp_path)
    assert main(["export", "standard-1.2.3", "--to", "transformer-lens", "--out", "lens"]) == 0
    script = tmp_path / f"{page.replace('-', '_')}.py"  # nnsight reads the source of its blocks
    script.write_text("\n".join(codes))
    runpy.run_path(str(script))
