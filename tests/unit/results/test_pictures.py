"""Figures are drawn once from kept data, and a change of drawing computes nothing again."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path

import pytest
from support.small_experiments import HEADS, HISTOGRAM, counted

from sih.report.subjects import figures
from sih.results import sources
from sih.results.cache import data_key
from sih.results.figure import Figure, shown
from sih.results.pictures import is_made, make, make_all
from sih.training.runs.run_store import RunStore

STORE = RunStore()
FIGURE = shown(HISTOGRAM)


def test_nothing_is_drawn_twice(tmp_path: Path) -> None:
    first = make(FIGURE, tmp_path, STORE)
    assert (first.result.computed, first.drawn) == (True, True)
    assert [path.name for path in first.pictures] == [
        f"claim_histogram.{end}" for end in ("pdf", "svg", "png")
    ]
    assert is_made(FIGURE, tmp_path, STORE)
    second = make(FIGURE, tmp_path, STORE)
    assert (second.result.computed, second.drawn) == (False, False)
    assert second.pictures == first.pictures


def test_a_touched_figure_is_drawn_again_from_the_data(tmp_path: Path) -> None:
    experiment, calls = counted(HISTOGRAM)
    figure = dataclasses.replace(FIGURE, experiment=experiment)
    first = make(figure, tmp_path, STORE)
    bytes_before = {path: path.read_bytes() for path in first.pictures}
    first.pictures[0].write_bytes(b"")
    first.pictures[1].unlink()
    assert not is_made(figure, tmp_path, STORE)
    second = make(figure, tmp_path, STORE)
    assert (second.result.computed, second.drawn) == (False, True)
    assert {path: path.read_bytes() for path in second.pictures} == bytes_before
    assert len(calls) == 1


def test_a_folder_may_move_and_a_damaged_record_says_nothing(tmp_path: Path) -> None:
    make(FIGURE, tmp_path / "out", STORE)
    record = json.loads((tmp_path / "out" / "data" / "claim_histogram.drawn.json").read_text())
    assert list(record["files"]) == [
        f"figures/claim_histogram.{end}" for end in ("pdf", "svg", "png")
    ]
    moved = (tmp_path / "out").rename(tmp_path / "elsewhere")
    assert is_made(FIGURE, moved, STORE)
    for content in (
        "",
        "[]",
        '{"key": "key"}',
        json.dumps({**record, "files": 3}),
        json.dumps({**record, "key": "k"}),
    ):
        (moved / "data" / "claim_histogram.drawn.json").write_text(content)
        assert not is_made(FIGURE, moved, STORE)


def test_a_table_stands_beside_the_data(tmp_path: Path) -> None:
    figure = Figure("toy", HISTOGRAM, "support.toy_figure")
    made = make(figure, tmp_path, STORE)
    assert [path.name for path in made.tables] == ["toy.csv"]
    assert made.tables[0].read_text().splitlines()[0] == "true lag,smallest gap"
    made.tables[0].unlink()
    again = make(figure, tmp_path, STORE)
    assert (again.result.computed, again.drawn) == (False, False)
    assert made.tables[0].exists()
    assert make(FIGURE, tmp_path, STORE).tables == ()


def test_a_moved_legend_draws_again_and_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever changes in a drawing, no source of data does; a change of what computes changes the
    key of the data."""
    make(FIGURE, tmp_path, STORE)
    modules = {one.experiment.compute.__module__ for one in figures().values()}
    drawings = {one.drawing for one in figures().values()}
    paths = {Path(str(importlib.import_module(name).__file__)) for name in drawings}
    before, key = {module: sources.digest(module) for module in modules}, data_key(HISTOGRAM, STORE)
    read = Path.read_bytes
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: read(path) + b"\nx = 1\n" * (path in paths))
        assert {module: sources.digest(module) for module in modules} == before
        second = make(FIGURE, tmp_path, STORE)
        assert (second.result.computed, second.drawn) == (False, True)
    module = "sih.paper.trained"
    for source in ("paper/trained.py", "models/fast/attention.c", "task/lags.py"):
        (path,) = (
            file for file in sources.source_files(module) if file.as_posix().endswith(source)
        )
        with monkeypatch.context() as patch:
            patch.setattr(
                Path, "read_bytes", lambda file, at=path: read(file) + b"\nx = 1\n" * (file == at)
            )
            assert sources.digest(module) != before[module]
            changed = data_key(HISTOGRAM, STORE) != key
            assert changed == (source == "task/lags.py")  # what it rests on


def test_every_figure_has_a_drawing_and_a_caption() -> None:
    for name, figure in figures().items():
        assert figure.name == name
        assert figure.caption.endswith("."), name
        assert callable(figure.module.draw)


@pytest.mark.slow
def test_several_processes_give_the_same_bytes(tmp_path: Path) -> None:
    for jobs in (1, 2):
        made = make_all([FIGURE, shown(HEADS)], tmp_path / str(jobs), STORE, jobs)
        assert {one.figure.name for one in made} == {"claim_histogram", "heads"}
    files = sorted(path.relative_to(tmp_path / "1") for path in (tmp_path / "1").rglob("*.*"))
    assert len(files) >= 10
    for file in files:
        assert (tmp_path / "1" / file).read_bytes() == (tmp_path / "2" / file).read_bytes()
