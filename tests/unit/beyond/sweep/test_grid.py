from __future__ import annotations

from pathlib import Path

import pytest
from support.small_grid import write_grid

from sih.beyond.sweep.grid import read_grid
from sih.training.presets import preset
from sih.training.runs.run_names import run_name


def test_every_combination_is_a_run_named_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text("[base]\nsteps = 5\n[grid]\nlags = [[1, 2], [1, 3]]\nseed = [0, 1, 2]\n")
    grid = read_grid(path)
    assert [(config.task.lags, config.seed) for config in grid.runs.values()] == [
        (lags, seed) for lags in ((1, 2), (1, 3)) for seed in (0, 1, 2)
    ]
    assert all(name == run_name(config) for name, config in grid.runs.items())
    assert grid.varied == ("lags", "seed")
    assert grid.point(list(grid.runs)[-1]) == {"lags": (1, 3), "seed": 2}


def test_a_preset_is_a_place_to_start_from(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('[base]\nlags = [1, 3]\n[grid]\npreset = ["paper", "harmonic"]\n')
    paper, harmonic = read_grid(path).runs.values()
    assert paper == preset("paper", lags=(1, 3))
    assert harmonic == preset("harmonic", lags=(1, 3))
    assert {"init", "steps", "batch"} <= set(read_grid(path).varied)


def test_a_grid_may_vary_the_law_of_the_matrix(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('[base]\nmatrix_seed = 11\n[grid]\nmatrix_law = ["dirichlet", "uniform"]\n')
    usual, uniform = read_grid(path).runs.values()
    assert usual == preset("paper", matrix_seed=11)
    assert uniform == preset("paper", matrix_seed=11, matrix_law="uniform")
    path.write_text('[base]\nmatrix_law = "uniform"\n[grid]\nconcentration = [0.5]\n')
    with pytest.raises(
        ValueError, match=r"concentration = 0\.5: the law uniform has no concentration"
    ):
        read_grid(path)


def test_a_grid_without_lists_is_one_run_and_one_said_twice_is_run_once(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text("[base]\nsteps = 5\n")
    assert len(read_grid(path).runs) == 1
    assert len(read_grid(write_grid(tmp_path, "seed = [1, 1]")).runs) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[base", "is no grid in TOML"),
        ("steps = 3", "there is no table 'steps'; a grid has"),
        ("[runs]\nseed = [1]", "there is no table 'runs'"),
        ("base = 3", "base and grid are tables"),
        ("[grid]\nseed = 3", r"grid.seed is a list of values.*got 3"),
        ("[grid]\nseed = []", r"grid.seed is a list of values"),
        ("[base]\nseed = 1\n[grid]\nseed = [1]", r"seed is in \[base\] and in \[grid\]"),
        ("[grid]\nsedd = [1]", "sedd = 1: a training configuration has no field 'sedd'"),
        ("[grid]\nlags = [[1, 2], [2, 1]]", r"lags = \[2, 1\]"),
        ("[base]\nsteps = 'many'", "steps|parameters"),
        ("[base]\npreset = 'papr'", "preset must be one of"),
        ("[grid]\nseed = [1]\nsteps = [0]", "seed = 1, steps = 0: steps"),
        (
            f"[grid]\nseed = {list(range(400))}\nmatrix_seed = {list(range(400))}",
            "asks for 160,000 runs",
        ),
    ],
)
def test_wrong_grids_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_grid(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_grid_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there is no file"):
        read_grid(tmp_path / "none.toml")
