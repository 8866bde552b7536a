"""What a sweep has found so far: a row for each run of its grid."""

from collections.abc import Mapping
from pathlib import Path

from sih.experiments.success_rates import Outcome, outcome_of
from sih.files import write_rows
from sih.runs.run import Run
from sih.sweep.grid import Grid

RESULTS = "results.csv"


def outcomes(grid: Grid, folder: Path, failed: Mapping[str, str]) -> list[Outcome]:
    """Read what became of every run of the grid. `failed` says why some did not end well."""
    return [outcome_of(Run(folder / name), grid.point(name), failed.get(name, "")) for name in grid.runs]


def write_results(grid: Grid, folder: Path, failed: Mapping[str, str]) -> list[Outcome]:
    """Write `results.csv`, whole or not at all, in the grid's order and without anything that depends on time."""
    found = outcomes(grid, folder, failed)
    rows = [["run", *grid.varied, "state", "step", "kl", "ml", "bma", "kl_over_ml", "success"]]
    for outcome in found:
        point = [
            " ".join(map(str, v)) if isinstance(v, tuple) else "" if v is None else str(v)
            for v in outcome.point.values()
        ]
        numbers = (outcome.kl, outcome.ml, outcome.bma, outcome.kl_over_ml)
        words = ["" if number is None else f"{number:.9g}" for number in numbers]
        success = str(int(outcome.succeeded)) if outcome.state != "unfinished" else ""
        rows.append([outcome.name, *point, outcome.state, str(outcome.step), *words, success])
    write_rows(folder / RESULTS, rows)
    return found
