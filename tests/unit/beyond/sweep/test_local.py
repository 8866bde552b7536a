"""Processes for the runs of a sweep: ended well, badly, early, or with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.small_runs import SHORT, make

from sih.beyond.sweep.local import run_here
from sih.beyond.sweep.worker import Job
from sih.training.config import TrainConfig
from sih.training.config_file import to_json
from sih.training.runs.run import Run

LONG = SHORT.replace(steps=100_000)
FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


def job(folder: Path, config: TrainConfig) -> Job:
    path = config.model.build(config.task.states, config.task.length).usual_path()
    return Job(folder.name, to_json(config), str(folder), path)


def test_runs_end_with_the_bytes_of_training_alone_and_one_failure_stops_no_other(
    tmp_path: Path,
) -> None:
    configs = {"a": SHORT, "wild": SHORT.replace(learning_rate=1e30), "b": SHORT.replace(seed=1)}
    ended = {
        news.name: news for news in run_here([job(tmp_path / n, c) for n, c in configs.items()], 2)
    }
    assert {name: news.state for name, news in ended.items()} == {
        "a": "finished",
        "wild": "failed",
        "b": "finished",
    }
    for name in ("a", "b"):
        make(tmp_path / "alone" / name, configs[name])
        for file in FILES:
            assert (tmp_path / name / file).read_bytes() == (
                tmp_path / "alone" / name / file
            ).read_bytes()


def test_a_killed_worker_is_a_failed_run(tmp_path: Path) -> None:
    news, ended = run_here([job(tmp_path / "a", LONG), job(tmp_path / "b", SHORT)], 1), {}
    for each in news:
        if each.name == "a" and each.state == "running" and each.step:
            os.kill(int(_trainer_of(tmp_path / "a")), signal.SIGKILL)
        if each.state != "running":
            ended[each.name] = each
    assert (ended["a"].state, ended["a"].why) == ("failed", "its process ended with exit code -9")
    assert ended["b"].state == "finished"


def test_left_early_the_workers_save_and_end(tmp_path: Path) -> None:
    news = run_here([job(tmp_path / "a", LONG)], 1)
    step = next(each.step for each in news if each.step)
    news.close()
    run = Run(tmp_path / "a")
    assert not run.finished
    assert run.metrics[-1]["step"] >= step - 10
    assert _trainer_of(tmp_path / "a") == ""


def test_when_the_parent_is_killed_the_workers_end(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[2:]\n"
        "from unit.beyond.sweep.test_local import LONG, job; from sih.beyond.sweep.local import run_here\n"
        "if __name__ == '__main__':\n"
        "    for news in run_here([job(Path(sys.argv[1]) / 'a', LONG)], 1): print(news.step, flush=True)\n"
    )
    (tmp_path / "script.py").write_text(script)
    words = [sys.executable, str(tmp_path / "script.py"), str(tmp_path), *filter(None, sys.path)]
    parent = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    assert parent.stdout.readline()
    assert _trainer_of(tmp_path / "a")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 20
    while _trainer_of(tmp_path / "a") and time.monotonic() < until:
        time.sleep(0.1)
    assert _trainer_of(tmp_path / "a") == ""


def _trainer_of(folder: Path) -> str:
    """The id of the process that holds the folder open, '' if there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(each) == str(folder) for each in (process / "fd").iterdir()):
                return process.name
        except OSError:
            continue
    return ""
