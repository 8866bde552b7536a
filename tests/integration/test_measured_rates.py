"""What docs/training.md says was measured: sweeps, with their grids and results, and the models that ship."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from sih.base.stats import wilson
from sih.beyond.sweep.grid import read_grid
from sih.beyond.sweep.success_rates import SUCCESS
from sih.training.presets import SEEN, preset
from sih.training.runs.run_store import SHIPPED, RunStore

ROOT = Path(__file__).parents[2]
TRAINING = (ROOT / "docs" / "training.md").read_text()
GRIDS = sorted((ROOT / "sweeps").glob("*.toml"))
AUTO = [path for path in GRIDS if path.stem.startswith("auto-")]
FROZEN = [path for path in GRIDS if path.stem.startswith("frozen-")]
"""The preset as it was before, with layers that stand still at first."""
RELATIVE = [path for path in GRIDS if path.stem.startswith("relative-")]
MEASURED = [path for path in GRIDS if path.with_suffix(".csv").exists()]


def _rows(grid: Path) -> list[dict[str, str]]:
    with open(grid.with_suffix(".csv"), newline="") as file:
        return list(csv.DictReader(file))


def test_all_of_the_presets_runs_are_there() -> None:
    assert len(AUTO) + len(FROZEN) + len(RELATIVE) == len(GRIDS)
    assert {*AUTO, *FROZEN} <= {*MEASURED}
    for path in AUTO:
        assert [row["run"] for row in _rows(path)] == list(read_grid(path).runs), path.stem


def test_the_docs_add_the_lag_sets_up() -> None:
    def rate(*names: str) -> str:
        rows = [row for name in names for row in _rows(ROOT / "sweeps" / f"auto-{name}.toml")]
        succeeded = sum(int(row["success"]) for row in rows)
        share = (
            "" if succeeded == len(rows) else f" ({succeeded / len(rows):.0%})".replace("%", " %")
        )
        return f"{succeeded} of {len(rows)}{share}"

    three = ("1.2.3", "1.3.4", "3.5.7")
    said = (
        f"standard model succeeds in {rate(*(f'{lags}-length64' for lags in three))} runs with three lags and "
        f"{rate('1.2.3.4.5-length64')} with five, the disentangled one at length 32 in "
        f"{rate(*(f'disentangled-{lags}-length32' for lags in three))} and "
        f"{rate('disentangled-1.2.3.4.5-length32')}."
    )
    assert said in (ROOT / "docs" / "training.md").read_text()


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
def test_the_docs_say_what_was_seen(path: Path) -> None:
    rows = _rows(path)
    said = re.search(
        rf"^\| `{re.escape(path.stem)}` \|(.*)\|$",
        (ROOT / "docs" / "training.md").read_text(),
        re.M,
    )
    assert said is not None
    succeeded, ratios = (
        sum(int(row["success"]) for row in rows),
        [float(row["kl_over_ml"]) for row in rows],
    )
    low, high = (round(100 * end) for end in wilson(succeeded, len(rows)))
    wanted = [
        f"{succeeded} of {len(rows)}",
        f"{low} to {high} %",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
    ]
    assert [cell.strip() for cell in said[1].split("|")][-4:-1] == wanted


def test_the_command_line_says_what_was_seen() -> None:
    rows = [row for path in AUTO for row in _rows(path)]
    good = [float(row["kl_over_ml"]) for row in rows if int(row["success"])]
    assert SEEN["auto"].startswith(
        f"a held-out {min(good):.2f} to {max(good):.2f} x ML on {len(good)} of {len(rows)} runs"
    )


def test_the_command_line_says_what_plain_adam_reaches() -> None:
    lengths = (("length32", "length32-seed1"), ("length64", "length64-seed1"))
    short, middle = (
        " and ".join(_ratio(f"paper-1.2.3-{each}") for each in pair) for pair in lengths
    )
    assert f"{short} x ML at length 32" in SEEN["paper"]
    assert (
        f"{middle} at 64 after 20,000, {_ratio('paper-1.2.3')} at 128 after 50,000" in SEEN["paper"]
    )
    assert SEEN["paper-disentangled"].startswith(
        f"{_ratio('paper-disentangled-1.2.3-length32')} x ML"
    )


def test_the_table_of_models_says_what_their_evaluations_do() -> None:
    """Read from the files by json alone."""
    table = TRAINING.split("## Models that ship")[1]
    said = re.findall(
        r"^\| `(\S+)` \| .* \| (\d\.\d+) \| (\d\.\d+) \| (\d\.\d+) \| (\S+ ± \S+) \|$", table, re.M
    )
    assert sorted(name for name, *_ in said) == sorted(RunStore().names(papers_task=True))
    for name, *numbers in said:
        found = _evaluation(name)
        means = [f"{found[each][0]:.4f}" for each in ("kl", "ml", "bma")]
        assert numbers == [*means, _with_error(name)], name


def test_the_table_of_plain_adam_says_what_its_runs_and_evaluations_do() -> None:
    table = TRAINING.split("## What plain Adam finds")[1].split("*End* is")[0]
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]]
        for line in table.splitlines()
        if "| `paper" in line
    ]
    assert sorted(row[0] for row in rows) == [
        name for name in RunStore().names() if name.startswith("paper-")
    ]
    for name, _, *at_steps, end, fresh in rows:
        lines = RunStore().run(name).evaluations
        ratios = {line["step"]: line["kl"] / lines[0]["ml"] for line in lines}
        for step, cell in zip(
            (2_000, 5_000, 10_000, 15_000, 20_000, 25_000), at_steps, strict=True
        ):
            assert cell == (f"{ratios[step]:.2f}" if step in ratios else ""), (name, step)
        last = [ratio for step, ratio in ratios.items() if step > lines[-1]["step"] - 2_000]
        assert end == f"{sum(last) / len(last):.2f} at {lines[-1]['step']:,}", name
        assert fresh == _with_error(name), name


def _evaluation(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHIPPED / name / "evaluation.json").read_text())
    return found


def _ratio(name: str) -> str:
    return f"{_evaluation(name)['kl_over_ml'][0]:.2f}"


def _with_error(name: str) -> str:
    mean, error = _evaluation(name)["kl_over_ml"]
    return f"{mean:.3f} ± {2 * error:.3f}"
