"""Runs small enough to make in a test, by the library and by the command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from support.small_configs import small

from sih.training.config import TrainConfig
from sih.training.runs.run_writer import RunWriter

SHORT = small(steps=24, evaluate_every=8)
WORDS = [
    "train", "--lags", "1", "2", "--states", "3", "--length", "12", "--heads", "1", "2", "--dim", "8", "--qk-dim", "4",
    "--steps", "24", "--batch", "5", "--evaluate-every", "8", "--held-out", "7", "--threads", "1", "--out",
]  # fmt: skip


def make(folder: Path, config: TrainConfig = SHORT, stop_after: int | None = None) -> RunWriter:
    writer = RunWriter(config, folder, threads=1)
    for step in writer:
        if step.step == stop_after:
            writer.save()
            break
    return writer


def make_all(parent: Path, configs: Mapping[str, TrainConfig]) -> Path:
    """A run for each configuration, in a folder of its name."""
    for name, config in configs.items():
        make(parent / name, config)
    return parent
