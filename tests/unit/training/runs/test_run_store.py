"""Runs are found by name: in the store's folder first, then among those that ship."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.small_runs import make

import sih
from sih.training.runs.run_store import SHIPPED, RunStore, open_run


def test_a_folder_of_runs_comes_before_the_shipped_models(tmp_path: Path) -> None:
    shipped, mine = RunStore(), RunStore(tmp_path)
    name = shipped.names()[0]
    shutil.copytree(SHIPPED / name, tmp_path / name)
    shutil.copytree(SHIPPED / name, tmp_path / "mine")
    (tmp_path / "unfinished").mkdir()
    assert shipped.find(name) == SHIPPED / name
    assert shipped.find("mine") is None
    assert mine.find(name) == tmp_path / name
    assert mine.find("mine") == tmp_path / "mine"
    assert mine.find("unfinished") is None
    assert mine.find("../" + tmp_path.name + "/mine") is None
    assert {"mine", name} <= set(mine.names())
    assert RunStore(tmp_path / "none").find(name) == SHIPPED / name
    assert mine.run("mine").folder == tmp_path / "mine"
    assert mine.run(SHIPPED / name).folder == SHIPPED / name


def test_finished_runs_and_those_that_are_missing(tmp_path: Path) -> None:
    name = RunStore().names()[0]
    shutil.copytree(SHIPPED / name, tmp_path / "mine")
    runs, missing = RunStore().finished((name, "none such", str(tmp_path / "mine")))
    assert {key: run.folder for key, run in runs.items()} == {
        name: SHIPPED / name,
        "mine": tmp_path / "mine",
    }
    assert missing == ["none such"]
    (tmp_path / "mine" / "weights.safetensors").unlink()
    assert RunStore().finished([str(tmp_path / "mine")]) == ({}, [str(tmp_path / "mine")])


def test_what_is_not_there_is_answered_with_the_nearest_names(tmp_path: Path) -> None:
    for function in (open_run, sih.load):
        with pytest.raises(
            ValueError, match=r"is neither a folder nor a shipped model\. `sih models`"
        ):
            function("xyz")
        with pytest.raises(
            ValueError, match=r"did you mean paper-1\.2\.3, standard-1\.2\.3 or .*\? `sih models`"
        ):
            function("papr-1.2.3")
    make(tmp_path / "mine", stop_after=3)
    with pytest.raises(ValueError, match=rf"did you mean {tmp_path / 'mine'}"):
        open_run(tmp_path / "mne")


def test_an_unfinished_run_is_loaded_when_asked_for(tmp_path: Path) -> None:
    make(tmp_path / "run", stop_after=3)
    with pytest.raises(ValueError, match="the run is not finished"):
        sih.load(tmp_path / "run")
    assert (
        sih.load(tmp_path / "run", unfinished=True).state_dict().keys()
        == open_run(tmp_path / "run").model.state_dict().keys()
    )
