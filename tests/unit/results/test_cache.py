"""Data is kept by content: computed once, and again only where something it depends on has changed."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
import torch
from support.pictures import same
from support.small_experiments import HEADS, HISTOGRAM, SMALL, counted

from sih.report.subjects import figures
from sih.results.cache import compute_once, data_key, look_up, models_read
from sih.training.runs.run_store import SHIPPED, RunStore

STORE = RunStore()


def test_nothing_is_computed_twice(tmp_path: Path) -> None:
    experiment, calls = counted(HISTOGRAM)
    first = compute_once(experiment, tmp_path, STORE)
    assert first.computed
    assert [path.name for path in first.files] == [
        "claim_histogram.json",
        "claim_histogram.npz",
    ]
    second = compute_once(experiment, tmp_path, STORE)
    assert not second.computed
    assert second.digest == first.digest
    assert same(second.data, first.data)
    assert calls == [SMALL]


def test_a_changed_config_computes_only_its_own(tmp_path: Path) -> None:
    other = dataclasses.replace(HISTOGRAM, config=dataclasses.replace(SMALL, matrices=5))
    assert compute_once(HISTOGRAM, tmp_path, STORE).computed
    assert compute_once(HEADS, tmp_path, STORE).computed
    found = compute_once(other, tmp_path, STORE)
    assert found.computed
    assert found.data is not None
    assert len(found.data.margins) == 5
    assert not compute_once(HEADS, tmp_path, STORE).computed


@pytest.mark.parametrize(
    "damage", ["", "{", '{"key": 1}', "[1, 2]", "changed number", "gone", "no arrays"]
)
def test_a_damaged_file_is_made_anew(damage: str, tmp_path: Path) -> None:
    whole = compute_once(HISTOGRAM, tmp_path, STORE).data
    file = tmp_path / "data" / "claim_histogram.json"
    if damage == "gone":
        file.unlink()
    elif damage == "no arrays":
        file.with_suffix(".npz").write_bytes(b"PK")
    elif damage == "changed number":
        record = json.loads(file.read_bytes())
        record["data"]["error"] += 1
        file.write_text(json.dumps(record))
    else:
        file.write_text(damage)
    assert look_up(HISTOGRAM, tmp_path, STORE) is None
    again = compute_once(HISTOGRAM, tmp_path, STORE)
    assert again.computed
    assert same(again.data, whole)


def test_the_key_knows_the_models_weights_and_the_report_where_they_came_from(
    tmp_path: Path,
) -> None:
    trained, mine = figures()["attention_maps_3.5.7_lag3"].experiment, RunStore(tmp_path)
    name = next(name for name in trained.reads(trained.config, STORE) if STORE.find(name))
    plain = data_key(trained, STORE)
    assert models_read(trained, STORE)[name] == "shipped"
    shutil.copytree(SHIPPED / name, tmp_path / name)
    assert data_key(trained, mine) == plain  # the same weights, wherever they are
    assert models_read(trained, mine)[name] == str(tmp_path / name)
    with open(tmp_path / name / "weights.safetensors", "ab") as file:
        file.write(b" ")
    assert data_key(trained, mine) != plain


def test_without_any_of_its_models_it_says_what_it_needs(tmp_path: Path) -> None:
    trained = figures()["trained"].experiment
    nobody = dataclasses.replace(
        trained, config=dataclasses.replace(trained.config, models=("standard-8.9",))
    )
    kept = compute_once(nobody, tmp_path, STORE)
    assert kept.missing == "needs standard-8.9, not trained yet"
    assert kept.data is None
    assert kept.files == ()
    assert not list(tmp_path.iterdir())


def test_threads_are_given_back(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    compute_once(HEADS, tmp_path, STORE)
    assert torch.get_num_threads() == before
