"""Results of a sweep so far: one row per run of its grid, with its quality and its
formation.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sih.attention.circuit_formation import keep_formation
from sih.base.files import write_rows
from sih.beyond.sweep.grid import Grid
from sih.beyond.sweep.success_rates import Outcome, outcome_of
from sih.training.runs.formation import EVENTS
from sih.training.runs.run import Run

RESULTS, FORMATIONS = "results.csv", "formation.csv"


def outcomes(grid: Grid, folder: Path, failed: Mapping[str, str]) -> list[Outcome]:
    """Return the outcome of every run of the grid. `failed` has the reasons of failed
    runs.
    """
    return [
        outcome_of(Run(folder / name), grid.point(name), failed.get(name, "")) for name in grid.runs
    ]


def write_results(grid: Grid, folder: Path, failed: Mapping[str, str]) -> list[Outcome]:
    """Write `results.csv`, whole or not at all, in the grid's order and without
    anything that depends on time.
    """
    found = outcomes(grid, folder, failed)
    rows = [["run", *grid.varied, "state", "step", "kl", "ml", "bma", "kl_over_ml", "success"]]
    for outcome in found:
        point = _words(outcome.point)
        numbers = (outcome.kl, outcome.ml, outcome.bma, outcome.kl_over_ml)
        words = ["" if number is None else f"{number:.9g}" for number in numbers]
        success = str(int(outcome.succeeded)) if outcome.state != "unfinished" else ""
        rows.append([outcome.name, *point, outcome.state, str(outcome.step), *words, success])
    write_rows(folder / RESULTS, rows)
    return found


def write_formations(grid: Grid, folder: Path) -> None:
    """Write `formation.csv`: the steps at which copying, a selective head and the
    circuit first appear in each run.

    A cell is empty if no measured step has it. `why` has the reason for a run that was
    not measured.
    """
    rows = [["run", *grid.varied, "checkpoints", "last_step", *EVENTS, "why"]]
    rows += [
        [name, *_words(grid.point(name)), *_formation(Run(folder / name))] for name in grid.runs
    ]
    write_rows(folder / FORMATIONS, rows)


def _formation(run: Run) -> list[str]:
    """Return a row's cells for one run."""
    try:
        if not run.finished:
            raise ValueError("it is not finished")
        found = keep_formation(run)
    except (ValueError, OSError) as error:
        return [*[""] * (2 + len(EVENTS)), str(error).splitlines()[0]]
    steps = (getattr(found, name) for name in EVENTS)
    cells = ["" if step is None else str(step) for step in steps]
    return [str(len(found.checkpoints)), str(found.checkpoints[-1].step), *cells, ""]


def _words(point: Mapping[str, Any]) -> list[str]:
    """Return the cells with a run's point in its grid."""
    return [
        " ".join(map(str, v)) if isinstance(v, tuple) else "" if v is None else str(v)
        for v in point.values()
    ]
