from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.small_grid import write_grid

from sih.cli import main
from sih.training.runs.run import list_runs


def test_a_sweep_is_run_told_and_not_run_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = (
        write_grid(tmp_path, "seed = [0, 1]\nlearning_rate = [0.01, 0.02]"),
        tmp_path / "out",
    )
    assert main(["sweep", str(grid), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "4 runs, 0 of them finished already" in said
    assert "4 of 4: " in said
    assert "learning_rate 0.02" in said
    first = (out / "results.csv").read_bytes()
    times = {
        run.folder: (run.folder / "weights.safetensors").stat().st_mtime_ns
        for run in list_runs(out)
    }
    assert len(times) == 4
    assert (out / "success.png").exists()
    assert main(["sweep", str(grid), "--out", str(out)]) == 0
    assert "4 runs, 4 of them finished already" in capsys.readouterr().out
    assert (out / "results.csv").read_bytes() == first
    assert {
        folder: (folder / "weights.safetensors").stat().st_mtime_ns for folder in times
    } == times
    assert main(["runs", str(out)]) == 0
    assert all(run.name in capsys.readouterr().out.replace("\n", "") for run in list_runs(out)[:1])


def test_a_run_killed_between_its_weights_and_its_end_is_tidied_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = write_grid(tmp_path, "seed = [0]"), tmp_path / "out"
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1"]) == 0
    (run,) = list_runs(out)
    weights = (run.folder / "weights.safetensors").read_bytes()
    (run.folder / "checkpoint.safetensors").write_bytes(weights)
    assert main(["sweep", str(grid), "--out", str(out), "--jobs", "1"]) == 0
    assert "1 run, 0 of them finished already" in capsys.readouterr().out
    assert not (run.folder / "checkpoint.safetensors").exists()
    assert (run.folder / "weights.safetensors").read_bytes() == weights


def test_a_sweep_that_keeps_weights_says_when_the_circuit_appeared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = write_grid(tmp_path, "seed = [0, 1]"), tmp_path / "out"
    grid.write_text(grid.read_text().replace("length = 12", "length = 20"))
    words = ["sweep", str(grid), "--out", str(out), "--jobs", "1"]
    assert main([*words, "--keep-every", "8"]) == 0
    assert "formation.csv" in capsys.readouterr().out
    first = (out / "formation.csv").read_bytes()
    assert len(first.splitlines()) == 3
    assert all((run.folder / "formation.json").exists() for run in list_runs(out))
    assert main(words) == 0
    assert "formation.csv" not in capsys.readouterr().out
    for run in list_runs(out):  # as if killed between the weights and the formation
        (run.folder / "formation.json").unlink()
    assert main([*words, "--keep-every", "8"]) == 0
    assert (out / "formation.csv").read_bytes() == first


def test_a_failed_run_is_said_and_the_code_is_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = write_grid(tmp_path, "learning_rate = [1e30, 1e-3]")
    assert main(["sweep", str(grid), "--out", str(tmp_path / "[red]"), "--jobs", "1"]) == 1
    said = capsys.readouterr()
    assert "failed: the loss became" in said.err
    assert "[red]/success.png" in said.out.replace("\n", "")
    assert "finished" in (tmp_path / "[red]" / "results.csv").read_text()


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_stopped_it_keeps_what_is_done_and_goes_on_to_the_same_bytes(
    number: signal.Signals, tmp_path: Path
) -> None:
    grid = write_grid(tmp_path, "seed = [0, 1]", "steps = 600")
    assert main(["sweep", str(grid), "--out", str(tmp_path / "whole"), "--jobs", "2"]) == 0
    out = tmp_path / "stopped"
    words = [sys.executable, "-m", "sih.cli", "sweep", str(grid), "--out", str(out), "--jobs", "1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "2 runs" in process.stdout.readline()
    while not any(out.glob("*/checkpoint.safetensors")):
        time.sleep(0.05)
    process.send_signal(number)
    _, complaint = process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command resumes it" in complaint
        assert "Traceback" not in complaint
    until = time.monotonic() + 30  # a killed parent's worker ends by itself, and frees its folder
    while (
        code := main(["sweep", str(grid), "--out", str(out), "--jobs", "2"])
    ) and time.monotonic() < until:
        time.sleep(0.5)
    assert code == 0
    assert (out / "results.csv").read_bytes() == (tmp_path / "whole" / "results.csv").read_bytes()
    for run in list_runs(out):
        for name in ("metrics.jsonl", "weights.safetensors"):
            assert (run.folder / name).read_bytes() == (
                tmp_path / "whole" / run.name / name
            ).read_bytes()


def test_bad_flags_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid, out = write_grid(tmp_path), tmp_path / "out"
    for words in (["--jobs", "0"], ["--device", "nowhere"]):
        assert main(["sweep", str(grid), "--out", str(out), *words]) == 2
    assert main(["sweep", str(tmp_path / "none.toml"), "--out", str(out)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 3
    assert not out.exists()
