"""A grid of runs that take a second each."""

from __future__ import annotations

from pathlib import Path

BASE = """
[base]
lags = [1, 2]
states = 3
length = 12
heads = [1, 2]
dim = 8
qk_dim = 4
batch = 5
evaluate_every = 8
held_out = 7
"""


def write_grid(folder: Path, grid: str = "seed = [0, 1]", base: str = "steps = 16") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "grid.toml"
    path.write_text(f"{BASE}{base}\n[grid]\n{grid}\n")
    return path
