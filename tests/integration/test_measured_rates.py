"""The files of docs/results/data that come from sweeps and evaluations hold what those found, and pages say it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from sih.base.stats import wilson
from sih.beyond.sweep.grid import read_grid
from sih.beyond.sweep.success_rates import SUCCESS
from sih.training.presets import preset
from sih.training.runs.run_store import SHIPPED, RunStore

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
GRIDS = sorted((ROOT / "sweeps").glob("*.toml"))
AUTO = [path for path in GRIDS if path.stem.startswith("auto-")]
FROZEN = [path for path in GRIDS if path.stem.startswith("frozen-")]
"""The preset as it was before, with layers that stand still at first."""
RELATIVE = [path for path in GRIDS if path.stem.startswith("relative-")]
MEASURED = [path for path in GRIDS if path.with_suffix(".csv").exists()]


def _rows(grid: Path) -> list[dict[str, str]]:
    return _table(grid.with_suffix(".csv"))


def _table(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_all_of_the_presets_runs_are_there() -> None:
    assert len(AUTO) + len(FROZEN) + len(RELATIVE) == len(GRIDS)
    assert {*AUTO, *FROZEN} <= {*MEASURED}
    for path in AUTO:
        assert [row["run"] for row in _rows(path)] == list(read_grid(path).runs), path.stem


def test_the_docs_add_the_lag_sets_up() -> None:
    def rate(*names: str) -> str:
        rows = [row for name in names for row in _rows(ROOT / "sweeps" / f"auto-{name}.toml")]
        return f"{sum(int(row['success']) for row in rows)} of {len(rows)}"

    def by_matrix(*names: str) -> str:
        rows = [row for name in names for row in _rows(ROOT / "sweeps" / f"auto-{name}.toml")]
        failed = {row["matrix_seed"] for row in rows if not int(row["success"])}
        matrices = {row["matrix_seed"] for row in rows}
        low, high = wilson(len(matrices - failed), len(matrices))
        return (
            f"{len(matrices - failed)} of {len(matrices)} | {100 * low:.0f} to {100 * high:.0f} %"
        )

    said = (RESULTS / "success-rates.md").read_text()
    sets = ("1.2.3", "1.3.4", "3.5.7", "1.2.3.4.5")
    for model, length, prefix in (("standard", 64, ""), ("disentangled", 32, "disentangled-")):
        names = [f"{prefix}{lags}-length{length}" for lags in sets]
        assert f"| {model} | {length} | {rate(*names[:3])} | {rate(names[3])} |" in said
        assert f"| {model} | {by_matrix(*names)} |" in said
    every = [path.stem.removeprefix("auto-") for path in AUTO]
    succeeded, _, runs = rate(*every).split()
    assert f"succeeds in {succeeded} of {runs} runs" in " ".join(said.split())


@pytest.mark.parametrize("path", FROZEN, ids=lambda path: path.stem)
def test_the_recipe_of_before_is_whole_in_its_grids(path: Path) -> None:
    """What stands there gives the runs of those names, so that they can be trained again."""
    grid = read_grid(path)
    assert [row["run"] for row in _rows(path)] == list(grid.runs)
    for config in grid.runs.values():
        flat = config.flat()
        assert (
            flat["steps"],
            flat["learning_rate"],
            flat["frozen_steps"],
            flat["parts_steps"],
        ) == (2400, 5e-3, 400, 0)


@pytest.mark.parametrize("path", AUTO, ids=lambda path: path.stem)
def test_it_is_the_preset_on_matrices_that_nothing_was_chosen_by(path: Path) -> None:
    grid = read_grid(path)
    assert [config.task.matrix_seed for config in grid.runs.values()] == list(range(100, 120))
    for config in grid.runs.values():
        task, model = config.task, config.model
        fields = {
            "lags": task.lags,
            "length": task.length,
            "matrix_seed": task.matrix_seed,
            "heads": config.heads,
        }
        assert config == preset("auto", model=model.kind, **fields)


def test_the_grids_of_relative_positions_have_every_run_once() -> None:
    """89 runs of 4,000 steps; a comment says how many each grid has."""
    grids = {path: read_grid(path).runs for path in RELATIVE}
    names = [name for runs in grids.values() for name in runs]
    assert len(names) == len(set(names)) == 89
    assert all(
        f": {len(runs)} runs, " in path.read_text().splitlines()[0] for path, runs in grids.items()
    )
    for config in (config for runs in grids.values() for config in runs.values()):
        assert (config.model.kind, config.heads, config.optimiser.steps) == (
            "relative",
            (1, 1, 1),
            4000,
        )
        assert config.evaluation.evaluate_every == 250


@pytest.mark.parametrize("path", MEASURED, ids=lambda path: path.stem)
def test_its_results_are_of_its_runs(path: Path) -> None:
    runs = read_grid(path).runs
    for row in _rows(path):
        assert int(row["matrix_seed"]) == runs[row["run"]].task.matrix_seed
        assert int(row["step"]) == runs[row["run"]].optimiser.steps
        assert float(row["kl_over_ml"]) == pytest.approx(float(row["kl"]) / float(row["ml"]))
        assert int(row["success"]) == (float(row["kl_over_ml"]) <= SUCCESS)


@pytest.mark.parametrize("path", [*AUTO, *FROZEN], ids=lambda path: path.stem)
def test_the_table_of_sweeps_says_what_they_found(path: Path) -> None:
    rows, configs = _rows(path), read_grid(path).runs.values()
    (said,) = (
        row for row in _table(RESULTS / "data" / "success-rates.csv") if row["sweep"] == path.stem
    )
    succeeded = sum(int(row["success"]) for row in rows)
    ratios = [float(row["kl_over_ml"]) for row in rows]
    low, high = (round(100 * end) for end in wilson(succeeded, len(rows)))
    numbers = (len(rows), succeeded, low, high, f"{min(ratios):.2f}", f"{max(ratios):.2f}")
    columns = ("runs", "succeeded", "percent_low", "percent_high")
    ends = ("kl_over_ml_lowest", "kl_over_ml_highest")
    assert [said[column] for column in (*columns, *ends)] == [str(number) for number in numbers]
    for config in configs:
        kept = (config.model.kind, config.task.lags, config.heads, config.task.length)
        lags, heads = (tuple(map(int, said[name].split())) for name in ("lags", "heads"))
        assert (said["model"], lags, heads, int(said["length"])) == kept


def test_the_table_of_sweeps_has_every_one() -> None:
    said = [row["sweep"] for row in _table(RESULTS / "data" / "success-rates.csv")]
    assert sorted(said) == sorted(path.stem for path in (*AUTO, *FROZEN))


def test_the_table_of_models_says_what_their_evaluations_do() -> None:
    """Read from the files by json alone."""
    rows = _table(RESULTS / "data" / "model-zoo.csv")
    assert sorted(row["run"] for row in rows) == RunStore().names()
    for row in rows:
        found = _evaluation(row["run"])
        for column in ("kl", "ml", "bma"):
            assert row[column] == f"{found[column][0]:.4f}", row["run"]
        assert f"{row['kl_over_ml']} ± {row['two_errors']}" == _with_error(row["run"])
        config = json.loads((SHIPPED / row["run"] / "config.json").read_text())
        assert f"steps {row['steps']} " in f"{_said(config)} ", row["run"]


def _said(config: Any) -> str:
    """Every field of a configuration, flat or in parts, as "name value"."""
    if not isinstance(config, dict):
        return str(config)
    return " ".join(f"{name} {_said(value)}" for name, value in config.items())


def test_the_table_of_unaided_adam_says_what_its_runs_and_evaluations_do() -> None:
    rows = _table(RESULTS / "data" / "training-curves.csv")
    assert [row["run"] for row in rows] == [
        name for name in RunStore().names() if name.startswith("paper-")
    ]
    for row in rows:
        lines = RunStore().run(row["run"]).evaluations
        ratios = {line["step"]: line["kl"] / lines[0]["ml"] for line in lines}
        for step in (2_000, 5_000, 10_000, 15_000, 20_000, 25_000):
            wanted = f"{ratios[step]:.2f}" if step in ratios else ""
            assert row[f"at_{step}"] == wanted, (row["run"], step)
        steps = lines[-1]["step"]
        last = [ratio for step, ratio in ratios.items() if step > steps - 2_000]
        assert row["end"] == f"{sum(last) / len(last):.2f}", row["run"]
        tenth = [ratio for step, ratio in ratios.items() if step > 0.9 * steps]
        assert row["tenth_10"] == f"{sum(tenth) / len(tenth):.2f}", row["run"]
        assert f"{row['kl_over_ml']} ± {row['two_errors']}" == _with_error(row["run"])


def _evaluation(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHIPPED / name / "evaluation.json").read_text())
    return found


def _with_error(name: str) -> str:
    mean, error = _evaluation(name)["kl_over_ml"]
    return f"{mean:.3f} ± {2 * error:.3f}"
