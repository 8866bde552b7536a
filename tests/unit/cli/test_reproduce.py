"""`sih figure` and `sih reproduce`, on figures small enough to make here."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sih
from sih.cli import figure_command, main, missing, reproduce_command
from sih.experiments import claim_histogram, head_counts, training_courses
from sih.experiments import table as experiments_table
from sih.experiments.experiment import Experiment
from sih.figures.drawn import make
from sih.report.page import number
from sih.report.statements import OURS, PAPER
from sih.runs.run_names import named
from sih.runs.run_store import RunStore

SMALL = claim_histogram.HistogramConfig(num_states=3, matrices=4, lags=(1, 2, 5))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment[Any, Any]]:
    """Two small figures, and one that wants a model nobody has trained."""
    largest, nobody = head_counts.HeadCountsConfig(largest=4), training_courses.CoursesConfig(models=("standard-1.9",))
    chosen: list[Experiment[Any, Any]] = [
        dataclasses.replace(claim_histogram.EXPERIMENT, config=SMALL),
        dataclasses.replace(head_counts.EXPERIMENT, config=largest),
        dataclasses.replace(training_courses.EXPERIMENT, config=nobody),
    ]
    experiments = {experiment.name: experiment for experiment in chosen}
    for module in (experiments_table, figure_command, reproduce_command):
        monkeypatch.setattr(module, "EXPERIMENTS", experiments)
    return experiments


def test_one_figure(few: dict[str, Experiment[Any, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "heads", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "head-range (Sec. 5.4): 0 lag sets -> holds" in said
    for ending in ("pdf", "svg", "png"):
        assert (tmp_path / "figures" / f"heads.{ending}").exists()
    assert json.loads((tmp_path / "data" / "heads.json").read_bytes())["name"] == "heads"
    assert main(["figure", "heads", "--out", str(tmp_path)]) == 0
    assert "kept" in capsys.readouterr().out


def test_names(few: dict[str, Experiment[Any, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(few)
    for words in (["figure", "haeds"], ["figure"]):
        assert main([*words, "--out", str(tmp_path / "none")]) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert "claim_histogram, heads, recipes" in complaint
    assert main(["figure", "recipes", "--out", str(tmp_path / "none")]) == 2
    assert "needs standard-1.9, not trained yet; `sih reproduce --train`" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_all_and_again(
    few: dict[str, Experiment[Any, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(words) == 0
    first = capsys.readouterr()
    assert "2 figures" in first.out
    assert "2 of them computed now" in first.out
    assert "not made: recipes (needs standard-1.9, not trained yet)" in first.out
    assert "models not trained yet: standard-1.9" in first.out
    assert "figures: 3 of 3" in first.err
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert [one["id"] for one in report] == [judge.id for judge in PAPER + OURS]
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert main(words) == 0
    assert "0 of them computed now" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_a_seed_is_handed_on(few: dict[str, Experiment[Any, Any]], tmp_path: Path) -> None:
    assert main(["figure", "claim_histogram", "--seed", "5", "--out", str(tmp_path)]) == 0
    assert json.loads((tmp_path / "data" / "claim_histogram.json").read_bytes())["config"]["seed"] == 5


def test_stopped_and_gone_on_with(
    few: dict[str, Experiment[Any, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["reproduce", "--out", str(tmp_path), "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setitem(few, "heads", dataclasses.replace(few["heads"], compute=_stop))
        assert main(words) == 130
        assert "the same command goes on" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
    assert main(words) == 0
    assert "1 of them computed now" in capsys.readouterr().out


def _stop(config: head_counts.HeadCountsConfig, store: RunStore) -> head_counts.HeadCounts:
    raise KeyboardInterrupt


def test_bad_input(few: dict[str, Experiment[Any, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--jobs", "0", "--out", str(tmp_path)]) == 2
    assert "--jobs is a whole number, at least 1; got 0" in capsys.readouterr().err


TINY: dict[str, Any] = {
    "lags": (1, 2),
    "length": 16,
    "dim": 8,
    "qk_dim": 4,
    "heads": (1, 1),
    "steps": 6,
    "batch": 4,
    "held_out": 8,
}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is trained in no time."""
    monkeypatch.setattr(missing, "named", lambda name: sih.TrainConfig(**TINY))


def test_what_is_missing_is_trained_first_and_then_used(
    few: dict[str, Experiment[Any, Any]], tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "--train", "--out", str(tmp_path), "--jobs", "1"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "standard-1.9: about" in said
    assert "training 1 models takes about" in said
    assert "3 figures" in said
    assert (tmp_path / "runs" / "standard-1.9" / "weights.safetensors").exists()
    record = json.loads((tmp_path / "data" / "recipes.json").read_bytes())
    assert record["models"] == {"standard-1.9": str(tmp_path / "runs" / "standard-1.9")}
    assert str(tmp_path / "runs" / "standard-1.9") in (tmp_path / "report.html").read_text()
    assert main(words) == 0
    assert "models takes about" not in capsys.readouterr().out


def test_training_stopped_by_ctrl_c_goes_on(
    few: dict[str, Experiment[Any, Any]],
    tiny: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sih.runs.run_writer import RunWriter

    def until_step_3(self: RunWriter) -> Iterator[object]:
        import signal

        for step in plain(self):
            if step.step == 3:
                signal.raise_signal(signal.SIGINT)
            yield step

    plain = RunWriter.__iter__
    words = ["reproduce", "--train", "--out", str(tmp_path), "--jobs", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "__iter__", until_step_3)
        assert main(words) == 130
    assert "is saved at step 3 of 6; go on with: the same command" in capsys.readouterr().err
    assert missing.seconds_left(sih.TrainConfig(**TINY), tmp_path / "runs" / "standard-1.9") > 0
    assert main(words) == 0
    assert "going on with" in capsys.readouterr().out


def test_every_figures_models_have_a_recipe() -> None:
    for experiment in experiments_table.EXPERIMENTS.values():
        for name in experiment.reads(experiment.config, RunStore()):
            if name in RunStore().names() or name.startswith("paper-"):
                continue
            assert named(name).task.lags


@pytest.mark.slow
@pytest.mark.parametrize("id", ["prop-1", "claim-1", "head-range", "cumulative-25-states"])
def test_the_command_of_a_statement_makes_its_number(
    id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    judge = next(judge for judge in PAPER if judge.id == id)
    words = shlex.split(judge.command)
    assert words[0] == "sih"
    assert main(words[1:]) == 0
    said = capsys.readouterr().out
    kept = make(experiments_table.EXPERIMENTS[judge.figure], Path("out"), RunStore()).kept
    statement = judge.judge(kept.data)
    assert f"{id} ({judge.section}): {number(statement.measured or 0.0)}" in said
