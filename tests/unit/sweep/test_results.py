from __future__ import annotations

import csv
from pathlib import Path

import pytest
from support.small_grid import write_grid
from support.small_runs import make

from sih.sweep.grid import read_grid
from sih.sweep.results import write_results


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
    assert [row["state"] for row in rows] == ["finished", "unfinished", "failed: why, then", "unfinished"]
    assert [row["success"] for row in rows] == [str(int(float(rows[0]["kl_over_ml"]) <= 1.2)), "", "0", ""]
    assert (rows[0]["step"], rows[3]["step"], rows[3]["kl"]) == ("16", "0", "")
    assert float(rows[0]["kl"]) / float(rows[0]["ml"]) == pytest.approx(float(rows[0]["kl_over_ml"]))
