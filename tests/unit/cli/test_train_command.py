from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from support.small_runs import SHORT, WORDS, make

from sih.cli import main, train_command
from sih.cli.train_command import command_of, explicit_command
from sih.training.config import TrainConfig
from sih.training.presets import preset
from sih.training.runs.run import list_runs
from sih.training.runs.run_names import run_name
from sih.training.runs.run_store import RunStore, open_run
from sih.training.task_config import TaskConfig


def test_the_command_trains_and_knows_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*WORDS, "runs/a"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == train_command.PAPER_PRESET
    assert "held-out KL of the references: maximum likelihood (ML) 0." in out
    assert re.search(r"held-out KL \d\.\d{4} nats, KL/ML \d+\.\d\d \(ML", out.splitlines()[-1])
    assert train_command.TOO_FEW_LAYERS in out  # it has two
    written = (tmp_path / "runs/a/weights.safetensors").read_bytes()
    assert main([*WORDS, "runs/a"]) == 0
    assert "finished already" in capsys.readouterr().out
    make(tmp_path / "library")
    assert (tmp_path / "library/weights.safetensors").read_bytes() == written
    assert main(WORDS[:-1]) == 0  # no --out: a name made from the content
    assert [run.name for run in list_runs("runs")] == ["a", run_name(SHORT)]


def test_two_layers_are_told_in_one_line_that_they_cannot_hold_the_circuit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--heads", "1", "1", "--lags", "1", "2", "--length", "12", "--steps", "1", "--batch"]
    assert main(["train", *words, "4", "--held-out", "4", "--out", str(tmp_path / "two")]) == 0
    assert capsys.readouterr().out.splitlines().count(train_command.TOO_FEW_LAYERS) == 1


def test_the_line_on_two_layers_has_the_numbers_of_the_shipped_models() -> None:
    runs = [run for run in map(open_run, RunStore().names()) if len(run.config.heads) == 2]
    ratios = [run.evaluation.kl_over_ml.mean for run in runs if run.evaluation]
    said = f"the four shipped models with two end at KL/ML {min(ratios):.1f} to {max(ratios):.1f}"
    assert len(ratios) == 4
    assert train_command.TOO_FEW_LAYERS.endswith(said)


def test_the_command_of_a_configuration_makes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = SHORT.replace(
        init="harmonic",
        max_period=3,
        held=2,
        shorter=((2, 5), (4, 6)),
        betas=(0.9, 0.99),
        steps=5,
        seed=7,
    )
    words = command_of(config).split()[1:]
    assert main([*words, "--threads", "1", "--out", str(tmp_path / "run")]) == 0
    assert open_run(tmp_path / "run").config == config


@pytest.mark.parametrize("name", [name for name in RunStore().names() if name != "fresh-1.2"])
def test_the_command_that_is_shown_of_a_shipped_model_makes_its_configuration(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[TrainConfig] = []

    def writer(config: TrainConfig, *_: object, **__: object) -> None:
        made.append(config)
        raise ValueError("that is enough")

    monkeypatch.setattr(train_command, "RunWriter", writer)
    words = explicit_command(open_run(name).config).split()[1:]
    assert main([*words, "--out", str(tmp_path / "run")]) == 2
    assert made == [open_run(name).config]
    config, text = open_run(name).config, " ".join(words)
    for flag, value in (
        ("lags", config.task.lags),
        ("heads", config.heads),
        ("seed", (config.seed,)),
    ):
        assert f"--{flag} {' '.join(map(str, value))}" in text


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


def test_a_preset_is_filled_in_from_what_the_flags_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*WORDS[1:-1], "--dim", "30", "--lag-prior", "0.25", "0.75"]
    assert main(["train", "--preset", "harmonic", *words, "--out", str(tmp_path / "run")]) == 0
    changes = {**SHORT.unusual(), "dim": 30, "lag_prior": (0.25, 0.75)}
    assert open_run(tmp_path / "run").config == preset("harmonic", **changes)
    assert open_run(tmp_path / "run").config.flat()["frozen_steps"] == 6
    assert "presets" not in capsys.readouterr().out


@pytest.mark.parametrize("fresh", [True, False])
def test_a_preset_with_a_law_of_its_own_takes_another_matrix(fresh: bool, tmp_path: Path) -> None:
    (tmp_path / "P.csv").write_text("0.5,0.5\n0.25,0.75\n")
    flags = ["--fresh"] if fresh else ["--matrix", str(tmp_path / "P.csv")]
    words = [
        "--preset",
        "paper-relative",
        *flags,
        "--lags",
        "1",
        "2",
        "--length",
        "8",
        "--dim",
        "8",
        "--qk-dim",
        "4",
    ]
    sizes = ["--steps", "1", "--batch", "2", "--held-out", "2", "--out", str(tmp_path / "run")]
    assert main(["train", *words, *sizes]) == 0
    task = open_run(tmp_path / "run").config.task
    given = (
        TaskConfig(fresh=True) if fresh else TaskConfig(matrix=((0.5, 0.5), (0.25, 0.75)), states=2)
    )
    assert task == dataclasses.replace(given, lags=(1, 2), length=8)


def test_old_names_of_flags_and_flags_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A disentangled model has no width: what once was ignored without a word still does no harm."""
    words = [
        *WORDS[:-1],
        "--model",
        "disentangled",
        "--init=harmonic",
        "--held=2",
        "--shorter",
        "3",
        "5",
        "9",
        "7",
    ]
    assert main([*words, "--mlp-dim=3", "--out", str(tmp_path / "run")]) == 0
    err = capsys.readouterr().err
    assert "--dim means nothing to disentangled, harmonic" in err
    assert "--mlp-dim means nothing to disentangled, harmonic" in err
    changes = {"frozen_steps": 2, "length_schedule": ((3, 5), (9, 7))}
    assert open_run(tmp_path / "run").config == SHORT.replace(
        model="disentangled", init="harmonic", **changes
    )


@pytest.mark.parametrize("dim", [["--dim", "8"], ["--dim=8"]])
def test_a_flag_of_another_kind_may_come_first(
    dim: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = WORDS.index("--dim")
    words = [
        "train",
        *dim,
        "--model",
        "disentangled",
        *WORDS[1:at],
        *WORDS[at + 2 :],
        str(tmp_path / "run"),
    ]
    assert main(words) == 0
    assert capsys.readouterr().err == "sih: --dim means nothing to disentangled, uniform\n"
    assert open_run(tmp_path / "run").config == SHORT.replace(model="disentangled")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--steps", "0"], "steps must be a whole number, at least 1; got 0"),
        (["--steps", "x"], "x"),
        (
            ["--model", "mamba"],
            "model must be one of standard, disentangled, relative, relative-disentangled; got 'mamba'",
        ),
        (
            ["--init", "magic"],
            "init must be one of embed, gpt2, harmonic, uniform, normal; got 'magic'",
        ),
        (
            ["--preset", "papr"],
            "preset must be one of paper, paper-disentangled, paper-relative, harmonic, auto; got 'papr'",
        ),
        (["--lags", "3", "1"], "lags must be distinct, positive and increasing"),
        (["--heads", "0"], "heads.0 must be a whole number, at least 1; got 0"),
        (["--held-out", "-1"], "held_out must be a whole number"),
        (["--warmup", "99"], "warmup is a number of steps, 0 to 24; got 99"),
        (["--stored", "int8"], "stored must be one of float32, float16; got 'int8'"),
        (["--target", "soft"], "target must be one of sampled, distribution; got 'soft'"),
        (
            ["--init", "small"],
            "the recipe small is for disentangled; a standard model has embed, gpt2, harmonic",
        ),
        (["--colour", "red"], "--colour"),
        (["--matrix", "none.csv"], "none.csv"),
        (["--model"], "--model"),
        (
            ["--init", "harmonic", "--held", "2", "--frozen-steps", "3"],
            "--held is the old name of --frozen-steps",
        ),
        (["--held=2", "--frozen-steps=3"], "leave one out"),
        (["--concentration", "True"], "--concentration"),
        (["--seed", "1.5"], "--seed"),
    ],
)
def test_bad_flags_are_an_error_of_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, str(tmp_path / "run"), *words]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_help_has_an_example_and_every_fields_own_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--model", "disentangled", "--preset", "harmonic", "--help"]) == 0
    out = capsys.readouterr().out
    assert "Example: sih train" in out
    for words in (
        "Tokens in a sequence",
        "Number of heads of each layer",
        "The largest period",
        "held-out sequences",
    ):
        assert words in out
    assert "--dim" not in out
