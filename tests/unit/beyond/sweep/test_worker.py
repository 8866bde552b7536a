from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from support.small_runs import SHORT, make

from sih.beyond.sweep import worker
from sih.beyond.sweep.worker import Job, News, work
from sih.training.config import TrainConfig
from sih.training.config_file import to_json
from sih.training.runs.run import Run, kept_path


def job(folder: Path, config: TrainConfig = SHORT) -> Job:
    return Job("a", to_json(config), str(folder), "plain")


def test_a_run_is_trained_on_the_path_it_is_given_and_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SECONDS_A_REPORT", 0.0)
    told: list[News] = []
    assert work(job(tmp_path / "run"), told.append) == News("a", 24, "finished")
    assert [news.step for news in told] == list(range(25))
    run = Run(tmp_path / "run")
    assert run.finished
    assert (run.environment["path"], run.environment["threads"]) == ("plain", 1)


def test_weights_along_the_way_are_kept_and_resumed_to_the_same_bytes(tmp_path: Path) -> None:
    def keeping(name: str) -> Job:
        return dataclasses.replace(job(tmp_path / name), keep_every=5)

    stopped: list[int] = []

    def stop(news: News) -> None:
        stopped.append(news.step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker, "SECONDS_A_REPORT", 0.0)
        assert work(keeping("stopped"), stop, stopped).state == "stopped"
    assert 0 < len(stopped) < 24
    assert work(keeping("stopped"), print) == work(keeping("whole"), print)
    assert Run(tmp_path / "whole").kept == (5, 10, 15, 20)
    for step in Run(tmp_path / "whole").kept:
        one, other = (
            kept_path(tmp_path / name, step).read_bytes() for name in ("whole", "stopped")
        )
        assert one == other
    assert work(job(tmp_path / "none"), print).state == "finished"
    assert Run(tmp_path / "none").kept == ()
    names = ("metrics.jsonl", "weights.safetensors")
    assert all(
        (tmp_path / "none" / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in names
    )


def test_a_run_that_keeps_weights_gets_its_formation_once_it_ends(tmp_path: Path) -> None:
    config = SHORT.replace(length=20)
    keeping = dataclasses.replace(job(tmp_path / "a", config), keep_every=5)
    assert work(keeping, print) == News("a", 24, "finished")
    kept = Run(tmp_path / "a").formation
    assert kept is not None
    assert [each.step for each in kept.checkpoints] == [5, 10, 15, 20, 24]
    assert work(job(tmp_path / "b", config), print).state == "finished"
    assert not (tmp_path / "b" / "formation.json").exists()
    too_short = dataclasses.replace(job(tmp_path / "c"), keep_every=5)
    assert work(too_short, print).state == "finished"
    assert not (tmp_path / "c" / "formation.json").exists()


def test_what_goes_wrong_is_news(tmp_path: Path) -> None:
    make(tmp_path / "other")
    assert "holds another run" in work(job(tmp_path / "other", SHORT.replace(batch=3)), print).why
    found = work(job(tmp_path / "wild", SHORT.replace(learning_rate=1e30)), print)
    assert (found.state, "the loss became" in found.why) == ("failed", True)
