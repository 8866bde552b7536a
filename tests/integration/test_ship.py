"""Copies of runs that ship: as good as the run, smaller, and said to be copies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from support.small_runs import SHORT, make

import sih
from research import ship
from sih.base.files import read_json, write_json
from sih.training.runs.evaluate import measure
from sih.training.runs.evaluation import digest_of_weights, write_evaluation
from sih.training.runs.run import Run
from sih.training.runs.run_store import SHIPPED, RunStore
from sih.training.runs.run_writer import RunWriter


def test_a_copy_has_rounded_weights_and_the_evaluations(tmp_path: Path) -> None:
    make(tmp_path / "run")
    run = Run(tmp_path / "run")
    found = ship.ship(run, tmp_path / "ships")
    copy = sih.open_run(tmp_path / "ships")
    for name, weight in run.model.state_dict().items():
        loaded = copy.model.state_dict()[name]
        assert loaded.dtype == torch.float32
        assert torch.equal(loaded, weight.half().float())
    assert copy.config == run.config
    assert copy.finished
    assert copy.environment == {**run.environment, "left_out": ship.NOTE}
    assert found.after < found.before
    # the KL moves as little as is said, on other sequences
    batch = sih.sample(run.task, 4096, rng=1)
    kl = [
        sih.mean_kl(sih.kl_to_truth(each.model.predict(batch.tokens), batch, run.task), run.task)
        for each in (run, copy)
    ]
    assert abs(kl[1].mean() / kl[0].mean() - 1) < 2 * ship.LIMIT
    assert copy.evaluation is not None
    assert copy.evaluation.kl.mean == pytest.approx(measure(copy.model, run.task).kl.mean, rel=1e-5)


def test_metrics_are_the_evaluations_as_a_run_reads_them(tmp_path: Path) -> None:
    """Also of a file of version 0.2 or before, whose means counted the last position."""
    make(tmp_path / "run")
    path = tmp_path / "run" / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line |= {name: 9.0 for name in ("kl", "ml", "bma") if name in line}
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    wanted = Run(tmp_path / "run").evaluations
    ship.ship(Run(tmp_path / "run"), tmp_path / "ships")
    found = Run(tmp_path / "ships").metrics
    assert [line["step"] for line in found] == [0, 8, 16, 24]
    for line, other in zip(found, wanted, strict=True):
        assert line["kl"] == pytest.approx(other["kl"], rel=1e-5)
        assert ("kl_along" in line) == (line["step"] in (0, 24))
    for name in ("ml", "bma", "ml_along"):
        assert found[0][name] == wanted[0][name]
    assert found[-1]["kl_along"] == wanted[-1]["kl_along"]


def test_an_evaluation_goes_along_with_the_digest_of_the_rounded_weights(tmp_path: Path) -> None:
    make(tmp_path / "run")
    run = Run(tmp_path / "run")
    old = digest_of_weights(run.folder / "weights.safetensors")
    write_evaluation(run.folder, measure(run.model, run.task), old)
    ship.ship(Run(run.folder), tmp_path / "ships")
    before, after = (
        read_json(folder / "evaluation.json") for folder in (run.folder, tmp_path / "ships")
    )
    new = digest_of_weights(tmp_path / "ships" / "weights.safetensors")
    assert after == {**before, "weights": new, "before_rounding": old}
    assert new != old
    shutil.copy(run.folder / "evaluation.json", run.folder / "formation.json")
    write_json(run.folder / "formation.json", {**before, "weights": "of others"})
    with pytest.raises(ValueError, match=r"formation.json is of other weights than those beside"):
        ship.ship(Run(run.folder), tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_what_does_not_ship(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path / "half", stop_after=8)
    with pytest.raises(ValueError, match="half is not finished; only a trained model ships"):
        ship.ship(Run(tmp_path / "half"), tmp_path / "ships")
    with pytest.raises(ValueError, match="nowhere is no run"):
        ship.ship(Run(tmp_path / "nowhere"), tmp_path / "ships")
    make(tmp_path / "run")
    monkeypatch.setattr(ship, "LIMIT", 1e-9)
    with pytest.raises(ValueError, match=r"float16 would move its KL by .* %, more than 1e-07 %"):
        ship.ship(Run(tmp_path / "run"), tmp_path / "ships")
    monkeypatch.undo()
    ship.ship(Run(tmp_path / "run"), tmp_path / "ships")
    with pytest.raises(ValueError, match="is such a copy already"):
        ship.ship(Run(tmp_path / "ships"), tmp_path / "ships")
    with pytest.raises(ValueError, match="a name is no path"):
        ship.main([str(tmp_path / "run"), "a/b", "--to", str(tmp_path)])


def test_a_copy_cannot_be_trained_on(tmp_path: Path) -> None:
    make(tmp_path / "run")
    ship.ship(Run(tmp_path / "run"), tmp_path / "ships")
    assert list(RunWriter(SHORT, tmp_path / "ships", threads=1)) == []  # finished: nothing to do
    with pytest.raises(ValueError, match="can't be trained on: weights rounded to float16"):
        RunWriter(SHORT.replace(steps=32), tmp_path / "ships", threads=1)
    (tmp_path / "ships" / "weights.safetensors").unlink()
    with pytest.raises(ValueError, match="train in a folder of your own"):
        RunWriter(SHORT, tmp_path / "ships", threads=1)


@pytest.mark.parametrize("name", RunStore().names())
def test_every_shipped_model_is_such_a_copy(name: str) -> None:
    run = Run(SHIPPED / name)
    assert run.left_out == ship.NOTE, "python research/ship.py RUN NAME"
    assert [line["step"] for line in run.evaluations] == [line["step"] for line in run.metrics]
    assert sum("kl_along" in line for line in run.metrics) == 2
    path = run.folder / "weights.safetensors"
    numbers = sum(weight.numel() for weight in run.model.parameters())
    assert path.stat().st_size < 2 * numbers + 8000
