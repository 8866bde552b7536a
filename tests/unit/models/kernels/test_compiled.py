"""Compiling the kernel: once, quietly, and with a word where it cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sih.models.kernels import compiled

LOSS = """
import torch, sih
model = sih.Transformer(num_states=3, length=20, dim=8, qk_dim=4, heads=(1, 2), rng=torch.Generator().manual_seed(0))
tokens = torch.randint(3, (4, 20), generator=torch.Generator().manual_seed(1))
for _ in range(2):
    print(f"{sih.next_token_loss(model, tokens).item():.5f}")
"""


def loss(**environment: str) -> tuple[list[str], list[str]]:
    inherited = {name: value for name, value in os.environ.items() if name != "SIH_COMPILED"}
    done = subprocess.run(
        [sys.executable, "-c", LOSS], capture_output=True, text=True, check=True, env={**inherited, **environment}
    )
    return done.stdout.splitlines(), [line for line in done.stderr.splitlines() if "Warning" in line]


def test_without_a_compiler_one_line_of_warning_and_the_same_loss(tmp_path: Path) -> None:
    asked, silence = loss(SIH_COMPILED="0")
    assert silence == []
    bare = {"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path), "CC": ""}
    fallen, told = loss(**bare)
    assert fallen == asked == loss()[0]
    assert len(told) == 1
    assert "no C compiler found" in told[0]
    _, told = loss(XDG_CACHE_HOME=str(tmp_path), CC="false")
    assert len(told) == 1


@pytest.mark.skipif(compiled.library() is None, reason="no C compiler on this machine")
def test_the_library_is_built_once(tmp_path: Path) -> None:
    kept = tmp_path / "sih"
    loss(XDG_CACHE_HOME=str(tmp_path))
    (library,) = kept.iterdir()
    built = library.stat().st_mtime_ns
    loss(XDG_CACHE_HOME=str(tmp_path))
    assert [path.stat().st_mtime_ns for path in kept.iterdir()] == [built]
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    assert loss(XDG_CACHE_HOME=str(blocked))[1] == []
