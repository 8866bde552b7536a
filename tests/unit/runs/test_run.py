from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sih
from sih.cli import main
from sih.cli.train_command import command_of
from sih.runs.run import Run, list_runs
from sih.runs.run_names import run_name
from sih.runs.run_store import RunStore, open_run
from sih.runs.run_writer import Recorder
from sih.training.trainer import DivergedError, TrainConfig, train

SMALL = TrainConfig(
    lags=(1, 2), states=3, length=12, heads=(1, 2), dim=8, qk_dim=4, steps=24, batch=5, evaluate_every=8, held_out=7
)
WORDS = [
    "train", "--lags", "1", "2", "--states", "3", "--length", "12", "--heads", "1", "2", "--dim", "8", "--qk-dim", "4",
    "--steps", "24", "--batch", "5", "--evaluate-every", "8", "--held-out", "7", "--threads", "1", "--out",
]  # fmt: skip


def make(folder: Path, config: TrainConfig = SMALL, stop_after: int | None = None) -> Recorder:
    recorder = Recorder(config, folder, threads=1)
    for step in recorder:
        if step.step == stop_after:
            recorder.save()
            break
    return recorder


def test_a_finished_run_holds_what_was_trained(tmp_path: Path) -> None:
    make(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names == ["config.json", "environment.json", "metrics.jsonl", "weights.safetensors"]
    run = open_run(tmp_path / "run")
    steps = list(train(SMALL))
    for name, weight in steps[-1].model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], weight)
        assert torch.equal(sih.load(tmp_path / "run").state_dict()[name], weight)
    assert run.config == SMALL
    assert torch.equal(run.task.P, SMALL.task().P)
    assert [line["step"] for line in run.metrics] == [0, 8, 10, 16, 20, 24]
    losses = [step.loss for step in steps[1:]]
    between = [losses[a:b] for a, b in ((0, 8), (8, 10), (10, 16), (16, 20), (20, 24))]
    assert [line["loss"] for line in run.metrics[1:]] == [sum(x for x in p if x) / len(p) for p in between]
    wanted = [step.evaluation.mean_kl for step in steps if step.evaluation]
    assert [line["kl"] for line in run.evaluations] == wanted
    assert run.evaluations[0]["ml"] > run.evaluations[0]["bma"]
    assert len(run.evaluations[-1]["kl_along"]) == 12
    assert run.environment["torch"] == torch.__version__
    assert run.environment["threads"] == 1


TABLES = dataclasses.replace(
    SMALL, model="disentangled", init="harmonic", max_period=3, held=6, shorter=((10, 8),), stored="float16"
)


@pytest.mark.parametrize(
    ("config", "stop"), [*((SMALL, stop) for stop in (0, 1, 8, 13, 23)), *((TABLES, stop) for stop in (0, 5, 17))]
)
def test_stopped_anywhere_and_started_again_the_bytes_are_the_same(
    config: TrainConfig, stop: int, tmp_path: Path
) -> None:
    make(tmp_path / "whole", config)
    make(tmp_path / "stopped", config, stop_after=stop)
    assert not Run(tmp_path / "stopped").finished
    assert open_run(tmp_path / "stopped").model.config == config.build().config
    with open(tmp_path / "stopped" / "metrics.jsonl", "ab") as file:
        file.write(b'{"step": 23, "lo')  # what a killed process wrote after the checkpoint
    (tmp_path / "stopped" / ".weights.safetensors.x.part").write_bytes(b"half")
    make(tmp_path / "stopped", config)
    for name in ("config.json", "metrics.jsonl", "weights.safetensors"):
        assert (tmp_path / "stopped" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert len(list((tmp_path / "stopped").iterdir())) == 4


def test_stopped_before_the_first_checkpoint(tmp_path: Path) -> None:
    Recorder(SMALL, tmp_path / "run", threads=1)  # writes the configuration and is gone
    make(tmp_path / "run")
    assert Run(tmp_path / "run").finished


def test_the_number_of_threads_of_a_run_is_kept(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=3)
    try:
        assert Recorder(SMALL, tmp_path / "run", threads=2).environment["threads"] == 1
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(1)


def test_a_name_says_the_content() -> None:
    assert run_name(SMALL).startswith("standard-1.2-heads-1.2-")
    assert run_name(SMALL) == run_name(TrainConfig.from_dict(SMALL.to_dict()))
    assert run_name(SMALL) != run_name(dataclasses.replace(SMALL, seed=1))


def test_another_runs_folder_and_foreign_folders_are_left_alone(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=2)
    with pytest.raises(ValueError, match="another run: seed is 0 there and 1 here"):
        Recorder(dataclasses.replace(SMALL, seed=1), tmp_path / "run")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    with pytest.raises(ValueError, match="not empty and holds no run"):
        Recorder(SMALL, tmp_path / "mine")
    with pytest.raises(ValueError, match="not empty and holds no run"):
        Recorder(SMALL, tmp_path / "mine" / "thesis.txt")
    with pytest.raises(ValueError, match="no run 'nowhere'"):
        open_run("nowhere")
    with pytest.raises(ValueError, match=r"has no config\.json"):
        open_run(tmp_path / "mine")


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    first = iter(Recorder(SMALL, tmp_path / "run", threads=1))
    next(first)
    with pytest.raises(ValueError, match="being trained by another process"):
        next(iter(Recorder(SMALL, tmp_path / "run", threads=1)))
    assert sum(1 for _ in first) == 24


def test_damage_is_named(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=9)
    path = tmp_path / "run" / "checkpoint.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ValueError, match=r"checkpoint\.safetensors is damaged"):
        make(tmp_path / "run")
    path.write_bytes(whole)
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    with pytest.raises(ValueError, match="shorter than when the checkpoint was made"):
        make(tmp_path / "run")
    (tmp_path / "run" / "config.json").write_text("[]")
    with pytest.raises(ValueError, match="no run's configuration"):
        open_run(tmp_path / "run")


def test_divergence_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder = make(tmp_path / "run", stop_after=5)
    again = Recorder(SMALL, tmp_path / "run", threads=1)
    steps = iter(again)
    next(steps)
    good = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    again.trainer.model.get_parameter("readout").data.fill_(math.nan)
    with pytest.raises(DivergedError):
        next(steps)
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == good
    assert recorder.trainer.step == 5
    code = main([*WORDS, str(tmp_path / "wild"), "--learning-rate", "1e30"])
    err = capsys.readouterr().err
    assert (code, err.count("\n")) == (1, 1)
    assert "the loss became" in err
    assert (tmp_path / "wild" / "checkpoint.safetensors").exists()


def test_the_command_trains_lists_shows_and_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    assert main([*WORDS, "runs/a"]) == 0
    assert "maximum likelihood's" in capsys.readouterr().out
    written = (tmp_path / "runs/a/weights.safetensors").read_bytes()
    assert main([*WORDS, "runs/a"]) == 0
    assert "finished already" in capsys.readouterr().out
    make(tmp_path / "library")
    assert (tmp_path / "library/weights.safetensors").read_bytes() == written
    assert main(WORDS[:-1]) == 0  # no --out: a name made from the content
    capsys.readouterr()
    assert [run.name for run in list_runs("runs")] == ["a", run_name(SMALL)]
    assert main(["runs"]) == 0
    assert run_name(SMALL)[:20] in capsys.readouterr().out
    assert main(["runs", "show", "runs/a", "--out", "figure"]) == 0
    assert (tmp_path / "figure.png").exists()
    assert main(["runs", "rm", "runs/a"]) == 2
    assert "needs a yes" in capsys.readouterr().err
    assert (tmp_path / "runs/a").exists()
    assert main(["runs", "rm", "runs/a", "--yes"]) == 0
    assert not (tmp_path / "runs/a").exists()


def test_the_command_of_a_configuration_makes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = dataclasses.replace(
        SMALL, init="harmonic", max_period=3, held=2, shorter=((2, 5), (4, 6)), betas=(0.9, 0.99), steps=5, seed=7
    )
    words = command_of(config).split()[1:]
    assert main([*words, "--threads", "1", "--out", str(tmp_path / "run")]) == 0
    assert open_run(tmp_path / "run").config == config


def test_a_matrix_from_a_file_is_in_the_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "P.csv").write_text("0.9,0.1\n0.4,0.6\n")
    words = [*WORDS, str(tmp_path / "run"), "--matrix", str(tmp_path / "P.csv")]
    assert main(words) == 2  # three states were asked for
    assert "--states 3 does not fit" in capsys.readouterr().err
    assert main([word for word in words if word not in ("--states", "3")]) == 0
    config = json.loads((tmp_path / "run/config.json").read_bytes())
    assert (config["states"], config["matrix"]) == (2, [[0.9, 0.1], [0.4, 0.6]])


def test_a_folder_that_cannot_be_written_is_an_error_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert main([*WORDS, str(tmp_path / "file" / "run")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "cannot write to" in err


def test_a_device_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*WORDS, str(tmp_path / "run"), "--device", "abacus"]) == 2
    assert "cannot compute on 'abacus'" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_an_error_and_loses_nothing(tmp_path: Path) -> None:
    """The largest file the process may write stands in for the disk."""
    make(tmp_path / "run", stop_after=5)
    good = (tmp_path / "run" / "checkpoint.safetensors").read_bytes()
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)); "
        "from sih.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-B", "-c", limited, *WORDS, str(tmp_path / "run")]
    found = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ), timeout=120, check=False)
    assert found.returncode == 2
    assert "cannot write to" in found.stderr
    assert (tmp_path / "run" / "checkpoint.safetensors").read_bytes() == good
    make(tmp_path / "run")
    assert Run(tmp_path / "run").finished


def test_models_lists_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--plain"]) == 0
    assert capsys.readouterr().out.split() == RunStore().names()
    with pytest.raises(ValueError, match="no model 'none such'"):
        sih.load("none such")


@pytest.mark.parametrize("name", RunStore().names())
def test_a_shipped_model_is_as_good_as_its_record_says(name: str) -> None:
    """On fresh sequences of its task, within the sampling error of both numbers."""
    run = open_run(name)
    assert run.finished
    batch = sih.sample(run.task, 512, rng=torch.Generator().manual_seed(987_654_321))
    with torch.no_grad():
        law = run.model.predict(batch.tokens)
    kl = sih.mean_kl(sih.kl_to_truth(law, batch, run.task), run.task)
    error = kl.std().item() / math.sqrt(512) * math.sqrt(1 + 512 / run.config.held_out)
    assert abs(kl.mean().item() - run.evaluations[-1]["kl"]) < 5 * error
