"""Data and figures are kept by content: made once, and again only where something they depend on has changed."""

from __future__ import annotations

import dataclasses
import functools
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sih.artifacts import keep as making
from sih.artifacts import source_digest as sources
from sih.artifacts.keep import is_made, make, make_all
from sih.experiments import claim_histogram
from sih.experiments import head_counts as heads
from sih.experiments.table import FIGURES, Entry, figure_named
from sih.runs.run_store import SHIPPED, RunStore

SMALL = claim_histogram.Config(num_states=3, matrices=4, lags=(1, 2, 5))
HISTOGRAM = Entry("claim_histogram", "sih.experiments.claim_histogram", SMALL)
HEADS = Entry("heads", "sih.experiments.head_counts", heads.Config(largest=4))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what was computed and drawn, in order."""
    done: list[str] = []

    def counted(what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*arguments: Any) -> Any:
            done.append(what)
            return function(*arguments)

        return call

    for module in (claim_histogram, heads):
        for name in ("compute", "draw"):
            monkeypatch.setattr(module, name, counted(f"{name} {module.NAME}", getattr(module, name)))
    return done


def test_nothing_is_made_twice(tmp_path: Path, calls: list[str]) -> None:
    first = make(HISTOGRAM, tmp_path)
    assert (first.computed, first.drawn) == (True, True)
    assert all(path.exists() for path in first.files)
    assert is_made(HISTOGRAM, tmp_path)
    second = make(HISTOGRAM, tmp_path)
    assert (second.computed, second.drawn) == (False, False)
    assert second.values == first.values
    assert set(second.files) == set(first.files)
    assert calls == ["compute claim_histogram", "draw claim_histogram"]


def test_a_changed_config_recomputes_only_its_own(tmp_path: Path, calls: list[str]) -> None:
    list(make_all([HISTOGRAM, HEADS], tmp_path, jobs=1))
    calls.clear()
    other = dataclasses.replace(HISTOGRAM, config=dataclasses.replace(SMALL, matrices=5))
    made = {one.entry.name: one for one in make_all([other, HEADS], tmp_path, jobs=1)}
    assert calls == ["compute claim_histogram", "draw claim_histogram"]
    assert len(made["claim_histogram"].data.margins) == 5


@pytest.mark.parametrize("damage", ["", "{", '{"key": 1}', "[1, 2]", "changed number", "gone"])
def test_a_damaged_file_is_made_anew(damage: str, tmp_path: Path, calls: list[str]) -> None:
    whole = make(HISTOGRAM, tmp_path).values
    file = tmp_path / "data" / "claim_histogram.json"
    if damage == "gone":
        file.unlink()
    elif damage == "changed number":
        record = json.loads(file.read_bytes())
        record["data"]["margins"][0][0] += 1
        file.write_text(json.dumps(record))
    else:
        file.write_text(damage)
    assert not is_made(HISTOGRAM, tmp_path)
    assert make(HISTOGRAM, tmp_path).values == whole
    assert calls.count("compute claim_histogram") == 2


def test_a_touched_figure_is_drawn_again_from_the_data(tmp_path: Path, calls: list[str]) -> None:
    first = make(HISTOGRAM, tmp_path)
    bytes_before = {path: path.read_bytes() for path in first.files}
    first.files[0].write_bytes(b"")
    first.files[1].unlink()
    second = make(HISTOGRAM, tmp_path)
    assert (second.computed, second.drawn) == (False, True)
    assert {path: path.read_bytes() for path in second.files} == bytes_before
    assert calls == ["compute claim_histogram", "draw claim_histogram", "draw claim_histogram"]


def test_a_change_of_style_redraws_and_computes_nothing(
    tmp_path: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(HISTOGRAM, tmp_path)
    plain = sources.digest

    def changed(module: str, without: tuple[str, ...] = ()) -> str:
        return plain(module, without) + ("" if "sih.figures.style" in without else "new")

    monkeypatch.setattr(sources, "digest", changed)
    second = make(HISTOGRAM, tmp_path)
    assert (second.computed, second.drawn) == (False, True)


def test_what_a_module_depends_on() -> None:
    found = sources.closure("sih.experiments.claim_histogram")
    assert {"sih.figures.style", "sih.theory.claim", "sih.markov", "sih.files"} <= found
    assert not any(name.startswith(("sih.cli", "sih.report")) for name in found)
    assert "sih.training.trainer" not in found
    assert "sih.figures.style" not in sources.closure("sih.experiments.claim_histogram", ["sih.figures.style"])
    assert "sih.runs.run" in sources.imports("sih.experiments.compared")


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(tmp_path: Path) -> None:
    entries = [HISTOGRAM, HEADS]
    for jobs in (1, 2):
        names = {made.entry.name for made in make_all(entries, tmp_path / str(jobs), jobs=jobs)}
        assert names == {"claim_histogram", "heads"}
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.*"))
    assert len(files) >= 10
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()


def test_every_figure_can_be_drawn_from_its_file_alone() -> None:
    for entry in FIGURES.values():
        assert hasattr(entry.data_type, "from_dict"), entry.name
        assert entry.module.CAPTION.endswith("."), entry.name
        assert entry.config == dataclasses.replace(entry.config)


def test_a_seed_changes_only_what_is_random() -> None:
    assert FIGURES["claim_histogram"].with_seed(7).config.seed == 7
    assert FIGURES["heads"].with_seed(7) == FIGURES["heads"]
    assert FIGURES["claim_histogram"].with_seed(0) == FIGURES["claim_histogram"]


def test_an_unknown_figure_is_answered_with_the_names() -> None:
    with pytest.raises(ValueError, match=r"no figure 'tezer'; the figures are .*claim_histogram"):
        figure_named("tezer")


def test_the_key_knows_the_models_weights_and_the_report_where_they_came_from(tmp_path: Path) -> None:
    entry = figure_named("trained")
    shipped, mine = RunStore(), RunStore(tmp_path)
    name = next(name for name in entry.models(shipped) if shipped.find(name))
    plain = making.data_key(entry, shipped)
    assert making.models_used(entry, shipped)[name] == "shipped"
    shutil.copytree(SHIPPED / name, tmp_path / name)
    assert making.data_key(entry, mine) == plain  # the same weights, wherever they are
    assert making.models_used(entry, mine)[name] == str(tmp_path / name)
    with open(tmp_path / name / "weights.safetensors", "ab") as file:
        file.write(b" ")
    assert making.data_key(entry, mine) != plain


def test_a_figure_without_any_of_its_models_says_what_it_needs(tmp_path: Path) -> None:
    entry = figure_named("trained")
    nobody = dataclasses.replace(entry, config=dataclasses.replace(entry.config, models=("standard-8.9",)))
    made = make(nobody, tmp_path)
    assert made.missing == "needs standard-8.9, not trained yet"
    assert made.files == ()
    assert not list(tmp_path.iterdir())


def test_threads_are_given_back(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    make(HEADS, tmp_path)
    assert torch.get_num_threads() == before
