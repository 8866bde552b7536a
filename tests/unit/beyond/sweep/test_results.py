from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.kept_runs import make_kept
from support.small_grid import write_grid
from support.small_runs import make

import sih
from sih.base.stats import Estimate
from sih.beyond.sweep.grid import read_grid
from sih.beyond.sweep.results import write_formations, write_results
from sih.training.runs.formation import Checkpoint, Formation


def test_a_row_for_each_run_of_the_grid_whatever_became_of_it(tmp_path: Path) -> None:
    grid = read_grid(write_grid(tmp_path, "seed = [0, 1, 2, 3]"))
    done, half, bad, none = grid.runs
    make(tmp_path / done, grid.runs[done])
    make(tmp_path / half, grid.runs[half], stop_after=9)
    make(tmp_path / bad, grid.runs[bad], stop_after=1)
    write_results(grid, tmp_path, {bad: "why, then"})
    with open(tmp_path / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [done, half, bad, none]
    assert [row["seed"] for row in rows] == ["0", "1", "2", "3"]
    assert [row["state"] for row in rows] == [
        "finished",
        "unfinished",
        "failed: why, then",
        "unfinished",
    ]
    assert [row["success"] for row in rows] == [
        str(int(float(rows[0]["kl_over_ml"]) <= 1.2)),
        "",
        "0",
        "",
    ]
    assert (rows[0]["step"], rows[3]["step"], rows[3]["kl"]) == ("16", "0", "")
    assert float(rows[0]["kl"]) / float(rows[0]["ml"]) == pytest.approx(
        float(rows[0]["kl_over_ml"])
    )


def test_a_row_of_when_the_circuit_appeared_for_each_run(tmp_path: Path) -> None:
    path = write_grid(tmp_path, "seed = [0, 1, 2]")
    path.write_text(path.read_text().replace("length = 12", "length = 20"))
    grid = read_grid(path)
    kept, without, none = grid.runs
    run = make_kept(tmp_path / kept, grid.runs[kept], keep_every=5)
    make(tmp_path / without, grid.runs[without])
    write_formations(grid, tmp_path)
    with open(tmp_path / "formation.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["run"] for row in rows] == [kept, without, none]
    assert [row["seed"] for row in rows] == ["0", "1", "2"]
    found = sih.formation(run.folder)
    for name in ("copying", "selective", "circuit"):
        step = getattr(found, name)
        assert rows[0][name] == ("" if step is None else str(step))
    assert [row["checkpoints"] for row in rows] == ["4", "", ""]  # 5, 10, 15 and the end
    assert [row["last_step"] for row in rows] == ["16", "", ""]
    assert rows[0]["why"] == ""
    assert "kept no weights along the way" in rows[1]["why"]
    assert rows[2]["why"] == "it is not finished"
    before = (tmp_path / "formation.csv").read_bytes()
    write_formations(grid, tmp_path)
    assert (tmp_path / "formation.csv").read_bytes() == before


def test_the_steps_in_the_table_are_those_at_which_it_appears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = read_grid(write_grid(tmp_path, "seed = [0]"))
    make(tmp_path / next(iter(grid.runs)), next(iter(grid.runs.values())))
    ways = {"17-32": Estimate(0.95, 0.01)}
    course = (
        Checkpoint(4, (0.6,), 0.1, {}),
        Checkpoint(8, (0.1,), 0.9, {}),
        Checkpoint(12, (0.1,), 0.1, ways),
    )
    monkeypatch.setattr(
        "sih.beyond.sweep.results.keep_formation", lambda run: Formation(course, 128)
    )
    write_formations(grid, tmp_path)
    heading, row = (tmp_path / "formation.csv").read_text().splitlines()
    assert heading == "run,seed,checkpoints,last_step,copying,selective,circuit,why"
    assert row.split(",")[1:] == ["0", "3", "12", "4", "8", "12", ""]
