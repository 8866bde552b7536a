"""Compiling the kernel: once, with a line that says so, for every width of vectors."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sih.models.fast import compiled

needs_compiler = pytest.mark.skipif(
    compiled.library() is None, reason="no C compiler on this machine"
)

LOSSES = """
import json, os, sys, torch, sih
for changes in json.loads(sys.argv[1]):
    if os.fork() == 0:  # one after the other, with torch loaded once
        os.environ.update(changes)
        rng = torch.Generator().manual_seed(0)
        model = sih.Transformer(num_states=3, length=20, dim=8, qk_dim=4, heads=(1, 2), rng=rng)
        tokens = torch.randint(3, (4, 20), generator=torch.Generator().manual_seed(1))
        print(*(f"{sih.next_token_loss(model, tokens).item():.5f}" for _ in range(2)), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


def losses(*environments: dict[str, str]) -> tuple[list[str], str]:
    """The loss in each environment, and what was said."""
    inherited = {name: value for name, value in os.environ.items() if name != "SIH_COMPILED"}
    words = [sys.executable, "-c", LOSSES, json.dumps(environments)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=inherited)
    return done.stdout.splitlines(), done.stderr


def test_without_a_compiler_the_same_loss_and_a_line_that_says_so_once(tmp_path: Path) -> None:
    bare = {"XDG_CACHE_HOME": str(tmp_path), "PATH": str(tmp_path), "CC": ""}
    failing = {"XDG_CACHE_HOME": str(tmp_path), "CC": "false"}
    garbled = {"XDG_CACHE_HOME": str(tmp_path), "CFLAGS": "-O3 '-g"}
    off = {"XDG_CACHE_HOME": str(tmp_path), "SIH_COMPILED": "0"}
    here, _ = losses({})
    found, told = losses(off, bare, bare, failing, failing, garbled)
    assert len(found) == 6
    assert len({*here, *found}) == 1
    none, failed, flags = told.splitlines()
    assert none.startswith("sih: no compiled attention (no C compiler found (cc, gcc, clang)): ")
    assert failed.startswith("sih: no compiled attention (Command ")
    assert (
        "(CFLAGS is not a list of words, no closing quotation: -O3 '-g)" in flags
        or compiled.library() is None
    )
    assert all(
        line.endswith("SIH_COMPILED=0 leaves this line out") for line in (none, failed, flags)
    )


@needs_compiler
def test_built_and_measured_once(tmp_path: Path) -> None:
    kept, blocked = tmp_path / "sih", tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    _, told = losses({"XDG_CACHE_HOME": str(tmp_path)})
    (line,) = told.splitlines()
    assert line.startswith("sih: compiling attention for this processor with ")
    assert line.endswith(".so; SIH_COMPILED=0 turns this off")
    made = {path: path.stat().st_mtime_ns for path in kept.iterdir()}
    assert sorted(path.suffix for path in made) == [".json", ".said", ".so"]
    found, told = losses({"XDG_CACHE_HOME": str(tmp_path)}, {"XDG_CACHE_HOME": str(blocked)})
    assert {path: path.stat().st_mtime_ns for path in kept.iterdir()} == made
    assert len(found) == 2
    (line,) = told.splitlines()  # of the second: the first found the library
    assert "for this process alone: the cache cannot be written to" in line


TARGETS = {
    "native": ("-march=native",),
    "SSE2": ("-march=x86-64",),
    "AVX2": ("-march=x86-64-v3",),
    "AVX-512": ("-march=x86-64-v4",),
    "AVX-512's tiles, in halves": (
        "-march=x86-64-v3",
        "-D__AVX512F__",
    ),  # the compiler splits each vector in two
    "aarch64": ("-static",),
}
SUPPORT = Path(__file__).parents[3] / "support"


@needs_compiler
@pytest.mark.parametrize("target", TARGETS)
def test_every_target_gives_the_definition(tmp_path: Path, target: str) -> None:
    """The kernel of this and of other processors, where their code can be built and run."""
    arm, here = target == "aarch64", platform.machine()
    compiler, runner = (
        ("aarch64-linux-gnu-gcc", ["qemu-aarch64"]) if arm else (os.environ.get("CC") or "cc", [])
    )
    if arm and not all(map(shutil.which, [compiler, *runner])):
        pytest.skip(
            "Debian's gcc-aarch64-linux-gnu and qemu-user build and run code for aarch64; they are not here"
        )
    if not arm and target != "native" and here != "x86_64":
        pytest.skip(f"code for {target} does not run on {here}")
    flags = [flag for flag in compiled.FLAGS if flag not in ("-march=native", "-shared", "-fPIC")]
    sources = [str(compiled.SOURCE), str(SUPPORT / "attention_check.c")]
    program = tmp_path / "check"
    subprocess.run([compiler, *flags, *TARGETS[target], *sources, "-o", program, "-lm"], check=True)
    needed = {"AVX2": "avx2", "AVX-512": "avx512bw", "AVX-512's tiles, in halves": "avx2"}.get(
        target, ""
    )
    if needed not in compiled.processor():
        pytest.skip(f"code for {target} was built, and this processor cannot run it")
    done = subprocess.run([*runner, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 12
