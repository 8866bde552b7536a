"""Figures are drawn once from kept data, and a change of drawing computes nothing again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.small_experiments import HEADS, HISTOGRAM, counted

from sih.experiments.table import EXPERIMENTS
from sih.figures import drawn
from sih.figures.drawn import is_made, make, make_all
from sih.figures.gallery import FIGURES
from sih.results import sources
from sih.results.cache import data_key
from sih.runs.run_store import RunStore

STORE = RunStore()


def test_nothing_is_drawn_twice(tmp_path: Path) -> None:
    first = make(HISTOGRAM, tmp_path, STORE)
    assert (first.kept.computed, first.new) == (True, True)
    assert [path.name for path in first.figures] == [
        f"claim_histogram.{end}" for end in ("pdf", "svg", "png")
    ]
    assert is_made(HISTOGRAM, tmp_path, STORE)
    second = make(HISTOGRAM, tmp_path, STORE)
    assert (second.kept.computed, second.new) == (False, False)
    assert second.figures == first.figures


def test_a_touched_figure_is_drawn_again_from_the_data(tmp_path: Path) -> None:
    experiment, calls = counted(HISTOGRAM)
    first = make(experiment, tmp_path, STORE)
    bytes_before = {path: path.read_bytes() for path in first.figures}
    first.figures[0].write_bytes(b"")
    first.figures[1].unlink()
    assert not is_made(experiment, tmp_path, STORE)
    second = make(experiment, tmp_path, STORE)
    assert (second.kept.computed, second.new) == (False, True)
    assert {path: path.read_bytes() for path in second.figures} == bytes_before
    assert len(calls) == 1


def test_a_folder_may_move_and_a_damaged_record_says_nothing(tmp_path: Path) -> None:
    make(HISTOGRAM, tmp_path / "out", STORE)
    record = json.loads((tmp_path / "out" / "data" / "claim_histogram.drawn.json").read_text())
    assert list(record["files"]) == [
        f"figures/claim_histogram.{end}" for end in ("pdf", "svg", "png")
    ]
    moved = (tmp_path / "out").rename(tmp_path / "elsewhere")
    assert is_made(HISTOGRAM, moved, STORE)
    for content in (
        "",
        "[]",
        '{"key": "key"}',
        json.dumps({**record, "files": 3}),
        json.dumps({**record, "key": "k"}),
    ):
        (moved / "data" / "claim_histogram.drawn.json").write_text(content)
        assert not is_made(HISTOGRAM, moved, STORE)


def test_a_moved_legend_draws_again_and_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever changes in figures/, no source of data does; a change of what computes changes the key of the data."""
    make(HISTOGRAM, tmp_path, STORE)
    modules = {experiment.compute.__module__ for experiment in EXPERIMENTS.values()}
    before, key = (
        {module: sources.digest(module) for module in modules},
        data_key(HISTOGRAM, STORE),
    )
    read, room = Path.read_bytes, Path(drawn.__file__).parent
    with monkeypatch.context() as patch:
        patch.setattr(
            Path, "read_bytes", lambda path: read(path) + b"\nx = 1\n" * (path.parent == room)
        )
        assert {module: sources.digest(module) for module in modules} == before
        second = make(HISTOGRAM, tmp_path, STORE)
        assert (second.kept.computed, second.new) == (False, True)
    module = "sih.experiments.trained"
    for source in ("experiments/trained.py", "models/kernels/attention.c", "task/lags.py"):
        (path,) = (
            file for file in sources.source_files(module) if file.as_posix().endswith(source)
        )
        with monkeypatch.context() as patch:
            patch.setattr(
                Path, "read_bytes", lambda file, at=path: read(file) + b"\nx = 1\n" * (file == at)
            )
            assert sources.digest(module) != before[module]
            assert (data_key(HISTOGRAM, STORE) != key) == (
                source != "experiments/trained.py"
            )  # not what it rests on


def test_every_experiment_has_its_figure_and_caption() -> None:
    assert list(FIGURES) == list(EXPERIMENTS)
    for name, experiment in EXPERIMENTS.items():
        assert experiment.name == name
        assert experiment.caption.endswith("."), name


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(tmp_path: Path) -> None:
    for jobs in (1, 2):
        made = make_all([HISTOGRAM, HEADS], tmp_path / str(jobs), STORE, jobs)
        assert {one.kept.experiment.name for one in made} == {"claim_histogram", "heads"}
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.*"))
    assert len(files) >= 10
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
