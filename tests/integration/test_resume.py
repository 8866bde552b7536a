"""A run that is killed, again and again, ends with the same bytes as one that is left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

COMMAND = [
    sys.executable, "-m", "sih.cli", "train", "--lags", "1", "2", "--states", "3", "--length", "16", "--heads", "1",
    "2", "--dim", "8", "--qk-dim", "4", "--batch", "4", "--evaluate-every", "25", "--held-out", "8", "--threads", "1",
    "--seed", "3",
]  # fmt: skip
STEPS = ("--steps", "300")
KEPT = ("config.json", "metrics.jsonl", "weights.safetensors")


def start(folder: Path, *more: str) -> subprocess.Popen[str]:
    words = [*COMMAND, "--out", str(folder), *more]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder: Path, *more: str) -> None:
    process = start(folder, *more)
    _, err = process.communicate(timeout=300)
    assert process.returncode == 0, err


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in KEPT}


def kill_until_done(folder: Path, kills: int, draw: random.Random, *more: str) -> int:
    """Kill the run at random moments after it has begun to write; returns how many times it was caught alive."""
    caught = 0
    for _ in range(kills):
        process = start(folder, *more)
        deadline = time.monotonic() + 120
        before = _written(folder)
        while process.poll() is None and _written(folder) == before and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        caught += process.wait() == -signal.SIGKILL
        process.communicate()
        if (folder / "weights.safetensors").exists():
            break
    return caught


def _written(folder: Path) -> tuple[tuple[str, int, int], ...]:
    found = []
    for path in sorted(folder.glob("*")):
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        found.append((path.name, status.st_size, status.st_mtime_ns))
    return tuple(found)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 300 steps that nobody stopped."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    finish(folder, *STEPS)
    return folder


def test_killed_at_random_moments_the_run_ends_with_the_same_bytes(
    whole: Path, tmp_path: Path
) -> None:
    killed = tmp_path / "killed"
    more = (*STEPS, "--checkpoint-seconds", "0.02")
    caught = kill_until_done(killed, 3, random.Random(0), *more)
    finish(killed, *more)
    assert caught >= 1
    assert contents(killed) == contents(whole)
    assert sorted(path.name for path in killed.iterdir()) == sorted(
        path.name for path in whole.iterdir()
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "every", ["0", "0.05", "1000"]
)  # seconds: at every step, now and then, never
def test_killed_many_times(seed: int, every: str, tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    steps = ("--steps", "1000")
    finish(whole, *steps)
    caught = kill_until_done(killed, 12, random.Random(seed), *steps, "--checkpoint-seconds", every)
    finish(killed, *steps)
    assert caught >= 5
    assert contents(killed) == contents(whole)


def test_interrupted_it_saves_says_how_to_go_on_and_ends_the_same(
    whole: Path, tmp_path: Path
) -> None:
    stopped = tmp_path / "stopped"
    process = start(stopped, *STEPS)
    while process.poll() is None and not (stopped / "checkpoint.safetensors").exists():
        time.sleep(0.005)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert err.startswith("sih: interrupted: ")
    assert err.count("\n") == 1
    assert "resume with: sih train --lags 1 2" in err
    finish(stopped, *STEPS)
    assert contents(stopped) == contents(whole)
