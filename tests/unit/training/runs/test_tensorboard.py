"""TensorBoard events, read back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sih.cli import main
from sih.training.config import TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_writer import RunWriter
from sih.training.runs.tensorboard import EventWriter

WORDS = [
    "train", "--lags", "1", "2", "--states", "3", "--length", "12", "--heads", "1", "1", "--dim", "8", "--qk-dim", "4",
    "--batch", "4", "--steps", "6", "--evaluate-every", "4", "--held-out", "8", "--threads", "1", "--out",
]  # fmt: skip
SMALL = TrainConfig(
    lags=(1, 2),
    states=3,
    length=12,
    heads=(1, 1),
    dim=8,
    qk_dim=4,
    batch=4,
    steps=6,
    evaluate_every=4,
    held_out=8,
)


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder))
    found.Reload()
    return {
        tag: [(event.step, event.value) for event in found.Scalars(tag)]
        for tag in found.Tags()["scalars"]
    }


def test_events_say_what_the_metrics_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard")
    assert main([*WORDS, str(tmp_path / "events"), "--tensorboard"]) == 0
    assert main([*WORDS, str(tmp_path / "plain")]) == 0
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "events" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()
    run, found = Run(tmp_path / "events"), scalars(tmp_path / "events")
    ml = run.evaluations[0]["ml"]
    for tag, unit in (("KL", 1.0), ("KL over ML", ml)):
        assert [step for step, _ in found[tag]] == [line["step"] for line in run.evaluations]
        assert [value for _, value in found[tag]] == pytest.approx(
            [line["kl"] / unit for line in run.evaluations], rel=1e-5
        )
    losses = [value for _, value in found["loss"]]
    assert [step for step, _ in found["loss"]] == [1, 2, 3, 4, 5, 6]
    means = [line["loss"] for line in run.metrics if "loss" in line]  # of steps 1 to 4, and 5 to 6
    assert means == pytest.approx([sum(losses[:4]) / 4, sum(losses[4:]) / 2])
    assert [value for _, value in found["learning rate"]] == pytest.approx([1e-3] * 6)


def test_a_run_that_goes_on_appends(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    killed = RunWriter(SMALL, tmp_path, threads=1)
    with EventWriter(tmp_path) as events:
        for step in killed:  # nothing is saved after step 3, and steps 4 and 5 are lost
            events.show(step)
            if step.step == 3:
                killed.save()
            if step.step == 5:
                break
    with EventWriter(tmp_path) as events:
        for step in RunWriter(SMALL, tmp_path, threads=1):
            events.show(step)
    found = scalars(tmp_path)
    assert [step for step, _ in found["loss"]] == [1, 2, 3, 4, 5, 6]
    assert [step for step, _ in found["KL"]] == [0, 4, 6]
    assert len(list(tmp_path.glob("events.out.*"))) == 2


def test_without_the_extra_one_line_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert main([*WORDS, str(tmp_path / "run"), "--tensorboard"]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "in a clone: pip install '.[tensorboard]'" in err
    assert not (tmp_path / "run").exists()
