"""Names of runs, flags of `sih train` and configurations are what they were when the files here were written."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sih.cli import main
from sih.training.config import TrainConfig
from sih.training.config_file import to_version_1
from sih.training.config_parts import RENAMED
from sih.training.presets import preset
from sih.training.runs.run import Run
from sih.training.runs.run_names import named, run_name
from sih.training.runs.run_store import SHIPPED


def golden(name: str) -> Any:
    return json.loads((Path(__file__).parent / name).read_bytes())


CONFIGS = golden("configs.json")


def given(changes: dict[str, Any]) -> dict[str, Any]:
    """JSON has lists where a configuration has tuples."""

    def frozen(value: Any) -> Any:
        return tuple(map(frozen, value)) if isinstance(value, list) else value

    return {name: frozen(value) for name, value in changes.items()}


@pytest.mark.parametrize("case", golden("run_names.json"), ids=lambda case: case["name"])
def test_names_of_runs(case: dict[str, Any]) -> None:
    assert run_name(TrainConfig(**given(case["changes"]))) == case["name"]


@pytest.mark.parametrize("name", CONFIGS["shipped"])
def test_shipped_runs(name: str) -> None:
    config = Run(SHIPPED / name).config
    assert to_version_1(config) == CONFIGS["shipped"][name]
    assert run_name(config) == CONFIGS["folders"][name]


@pytest.mark.parametrize(
    "case", CONFIGS["presets"], ids=lambda case: f"{case['preset']} {case['changes']}"
)
def test_presets(case: dict[str, Any]) -> None:
    assert to_version_1(preset(case["preset"], **given(case["changes"]))) == case["flat"]


@pytest.mark.parametrize("name", CONFIGS["named"])
def test_what_a_name_asks_for(name: str) -> None:
    assert to_version_1(named(name)) == CONFIGS["named"][name]


def test_flags(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All flags of before are there, those of a recipe with the recipe. Old names are read, too."""
    monkeypatch.setenv("COLUMNS", "400")
    assert main(["train", "--help"]) == 0
    assert main(["train", "--init", "harmonic", "--help"]) == 0
    flags = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    renamed = {f"--{old}" for old in RENAMED}
    assert set(golden("train_flags.json")) - flags == renamed
    for old in renamed:
        assert main(["train", "--init", "harmonic", old, "1", "--help"]) == 0
