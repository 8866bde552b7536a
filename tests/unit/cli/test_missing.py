from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.cli.conftest import Experiments

import sih
from sih.cli import main, missing
from sih.report.subjects import figures
from sih.training.runs.run_names import named
from sih.training.runs.run_store import RunStore

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
    few: Experiments, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    few: Experiments,
    tiny: None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sih.training.runs.run_writer import RunWriter

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
    assert "is saved at step 3 of 6; resume with: the same command" in capsys.readouterr().err
    assert missing.seconds_left(sih.TrainConfig(**TINY), tmp_path / "runs" / "standard-1.9") > 0
    assert main(words) == 0
    assert "resuming" in capsys.readouterr().out


def test_every_figures_models_have_a_recipe() -> None:
    store = RunStore()
    read = {
        name
        for experiment in (figure.experiment for figure in figures().values())
        for name in experiment.reads(experiment.config, store)
    }
    for name in read - set(store.names()):
        assert name.startswith("paper-") or named(name).task.lags
