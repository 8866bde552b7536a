"""Compiling the kernel: once, quietly, for every width of vectors."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from sih.models.kernels import compiled

needs_compiler = pytest.mark.skipif(compiled.library() is None, reason="no C compiler on this machine")

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


def test_without_a_compiler_the_same_loss_and_no_word(tmp_path: Path) -> None:
    asked, silence = loss(SIH_COMPILED="0")
    bare = {"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path), "CC": ""}
    fallen, told = loss(**bare)
    assert fallen == asked == loss()[0]
    assert silence == told == loss(XDG_CACHE_HOME=str(tmp_path), CC="false")[1] == []


@needs_compiler
def test_built_and_measured_once(tmp_path: Path) -> None:
    kept = tmp_path / "sih"
    loss(XDG_CACHE_HOME=str(tmp_path))
    made = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert sorted(path.suffix for path in made) == [".json", ".so"]
    loss(XDG_CACHE_HOME=str(tmp_path))
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == made
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    assert loss(XDG_CACHE_HOME=str(blocked))[1] == []


@needs_compiler
@pytest.mark.parametrize("target", ["-march=x86-64-v3", "-march=x86-64", "-march=x86-64-v4"])
def test_every_width_of_vectors_gives_the_same(tmp_path: Path, target: str) -> None:
    """The kernel of other processors, where this one can run it."""
    if platform.machine() != "x86_64" or (target.endswith("v4") and "avx512f" not in compiled.processor()):
        pytest.skip(f"this processor cannot run code for {target}")
    program = (
        "from unit.models.kernels.test_causal import test_compiled_at_the_papers_sizes as check\n"
        "for sizes in ((128, 3, 32, 64), (37, 2, 5, 5), (300, 2, 32, 64)): check(*sizes)"
    )
    search = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CFLAGS": target, "PYTHONPATH": search}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    assert list((tmp_path / "sih").glob("*.so"))
