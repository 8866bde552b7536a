from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import run


def test_the_same_command_writes_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.npz", "b.npz"):
        run(capsys, "sample", "--size", "4", "--kind", "sparse", "--out", str(tmp_path / name))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
