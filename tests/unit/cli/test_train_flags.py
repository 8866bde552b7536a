from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from support.small_configs import SMALL, small

import sih
from sih.cli.train_flags import command_of, defaults, explicit_command
from sih.training.presets import preset


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("", ("standard", "uniform", "adam")),
        ("--lags 1 3 --model disentangled --heads 1 1 1", ("disentangled", "uniform", "adam")),
        ("--preset auto --dim 30", ("standard", "harmonic", "soap")),
        ("--init=normal --preset=auto --model=relative", ("relative", "normal", "soap")),
    ],
)
def test_the_words_that_choose_are_read_wherever_they_stand(
    words: str, chosen: tuple[str, ...]
) -> None:
    if "relative" in words:  # the preset's recipe has no form for it
        with pytest.raises(ValueError, match="the recipe harmonic is for"):
            defaults(words.split())
        return
    found, left = defaults(words.split())
    parts = (found["model"].kind, found["recipe"].name, found["optimiser"].name)
    assert (parts, left) == (chosen, words.split())


def test_a_flag_of_another_kind_goes_with_its_values(capsys: pytest.CaptureFixture[str]) -> None:
    _, left = defaults(
        [
            "--dim",
            "32",
            "--model",
            "disentangled",
            "--held",
            "2",
            "--init",
            "harmonic",
            "--steps",
            "3",
        ]
    )
    assert left == [
        "--model",
        "disentangled",
        "--frozen-steps",
        "2",
        "--init",
        "harmonic",
        "--steps",
        "3",
    ]
    assert capsys.readouterr().err == "sih: --dim means nothing to disentangled, harmonic\n"


def test_the_size_of_a_matrix_is_the_number_of_states(tmp_path: Path) -> None:
    path = tmp_path / "P.csv"
    path.write_text("0.5,0.5\n0.25,0.75\n")
    found, _ = defaults(["--matrix", str(path), "--preset", "paper-relative"])
    assert (found["task"].states, found["task"].matrix_law) == (2, "dirichlet")
    assert defaults(["--preset", "paper-relative"])[0]["task"].matrix_law == "uniform"


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"fresh": True}, "--fresh"),
        ({"length_schedule": ((2, 5), (4, 6))}, "--length-schedule 2 5 4 6"),
        ({"lag_prior": (0.25, 0.75)}, "--lag-prior 0.25 0.75"),
        ({"matrix": ((0.5, 0.5), (0.5, 0.5)), "states": 2}, "--matrix P.csv"),
    ],
    ids=str,
)
def test_every_kind_of_value_has_its_words(changes: dict[str, Any], flags: str) -> None:
    assert flags in command_of(small(**changes))
    assert "True" not in command_of(small(**changes))


def test_the_explicit_command_is_of_the_nearest_preset() -> None:
    said = explicit_command(preset("auto", lags=(1, 3), seed=4))
    assert shlex.split(said)[2:4] == ["--preset", "auto"]
    assert said.endswith("--lags 1 3 --heads 1 3 1 --length 128 --seed 4")


def test_no_command_names_a_task_of_ones_own() -> None:
    task = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], [[-1, 0, 1, 2], [-1, 0, 0, 1]])
    for command in (command_of, explicit_command):
        said = command(SMALL.replace(task=task))
        assert said.startswith("sih.train(task=task, heads=(1, 2), dim=8, qk_dim=4, steps=6,")
        assert said.endswith("in Python: task ParentsTask is an object, no command names it")
