"""Training on a device that is not the CPU, on a stand-in that refuses what a real one refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.elsewhere_runs import CONFIGS

TESTS = Path(__file__).parents[1]
FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    command = [sys.executable, "-m", "support.elsewhere_runs", str(folder)]
    done = subprocess.run(command, cwd=TESTS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return folder


@pytest.mark.parametrize("name", CONFIGS)
def test_same_data_same_steps_same_bytes(runs: Path, name: str) -> None:
    for file in FILES:
        assert (runs / "there" / name / file).read_bytes() == (
            runs / "here" / name / file
        ).read_bytes()


def test_stopped_there_it_goes_on_there_to_the_same_bytes(runs: Path) -> None:
    for file in FILES:
        assert (runs / "again" / file).read_bytes() == (
            runs / "there" / "staged" / file
        ).read_bytes()


@pytest.mark.parametrize("name", CONFIGS)
def test_the_environment_names_the_device(runs: Path, name: str) -> None:
    devices = {
        place: json.loads((runs / place / name / "environment.json").read_text())
        for place in ("here", "there")
    }
    assert {place: found["device"] for place, found in devices.items()} == {
        "here": "cpu",
        "there": "elsewhere:0",
    }
