"""`sih runs`: the training runs on disk, listed, plotted, removed."""

import shutil
import sys
from pathlib import Path
from typing import Annotated

import torch
import tyro

from sih.cli.printing import plain_console, table_of
from sih.cli.train_command import command_of
from sih.runs.run import Run, list_runs
from sih.runs.run_store import open_run
from sih.task import sample

WATCHED = 32
"""Sequences that a run's heads are watched on."""


def runs(folder: Annotated[Path, tyro.conf.Positional] = Path("runs"), seed: int = 0) -> None:
    """List the runs in a folder, side by side: how far they are and how good.

    Example: sih runs runs

    Args:
        folder: the folder that holds the runs' folders.
        seed: unused; a list is not random.
    """
    title = f"Runs in {folder}: mean KL past max lag, on held-out sequences"
    readable = []
    for run in list_runs(folder):
        try:
            _row(run)
            readable.append(run)
        except ValueError as error:  # a bad neighbour hides no other
            print(f"sih: {error}", file=sys.stderr)
    show_runs(readable, title)


def show_runs(found: list[Run], title: str) -> None:
    """Print a table with one row for each run, as wide as the terminal, or wide enough for a whole row elsewhere."""
    header = ["run", "model", "lags", "heads", "steps", "seconds", "loss", "KL", "ML", "BMA", "KL / ML"]
    table = table_of([header, *map(_row, found)], title, left=2, overflow="fold")
    plain_console(160, wrap=False).print(table)


def _row(run: Run) -> list[str]:
    config, seconds = run.config, run.environment.get("seconds")
    shape = (config.model.kind, " ".join(map(str, config.task.lags)), " ".join(map(str, config.heads)))
    step = run.metrics[-1]["step"] if run.metrics else 0
    progress = f"{step:,}" if run.finished else f"{step:,} of {config.optimiser.steps:,}"
    losses = [line["loss"] for line in run.metrics if "loss" in line]
    numbers = [f"{seconds:.0f}" if seconds is not None else "", f"{losses[-1]:.4f}" if losses else ""]
    if run.evaluations:
        kl, first = run.evaluations[-1]["kl"], run.evaluations[0]
        numbers += [f"{kl:.4f}", f"{first['ml']:.4f}", f"{first['bma']:.4f}", f"{run.kl_over_ml:.2f}"]
    return [run.name, *shape, progress, *numbers]


def show(
    run: Annotated[str, tyro.conf.Positional], out: Path | None = None, period: int | None = None, seed: int = 0
) -> None:
    """Plot a run's loss and KL, beside maximum likelihood's and the Bayes average's, and say where its heads look.

    Example: sih runs show runs/flagship --out flagship

    Args:
        run: a run's folder, or the name of a shipped model.
        out: the figure's path without an ending; a .png and its relatives are written (NAME-training).
        period: what to take the heads' offsets modulo (max lag - min lag + 1 unless said).
        seed: of the sequences that the heads are watched on.
    """
    from sih.analysis.correlation import probability_correlation
    from sih.analysis.lag_mass import masses_by_offset
    from sih.figures import style
    from sih.figures.course_panels import draw_training

    if period is not None and period < 1:
        raise ValueError(f"--period is a whole number, at least 1; got {period}")
    found = open_run(run)
    console = plain_console()
    if not found.evaluations:
        raise ValueError(f"{run} has nothing to show yet: its run has no metrics")
    show_runs([found], f"Run {found.name}")
    console.print(f"made by: {command_of(found.config)}")
    task = found.task
    tokens = sample(task, WATCHED, rng=torch.Generator().manual_seed(seed)).tokens
    with torch.no_grad():
        attention = found.model.trace(tokens).between_tokens
    for head in masses_by_offset(attention, period or task.max_lag - task.min_lag + 1):
        console.print(str(head))
    if attention:
        correlation = probability_correlation(attention[0][:, 0], tokens, task)
        alike = "attention of head 1.1 at the lags, correlation with the normalised probabilities"
        console.print(f"{alike}: {correlation:.2f}")
    for path in style.save(draw_training(found), out or Path(f"{found.name}-training")):
        console.print(f"wrote {path}")


def remove(run: Annotated[Path, tyro.conf.Positional], yes: bool = False, seed: int = 0) -> int:
    """Remove a run's folder, after asking.

    Example: sih runs rm runs/flagship

    Args:
        run: the run's folder.
        yes: do not ask.
        seed: unused.
    """
    if not run.is_dir():
        raise ValueError(f"there is no folder {run}")
    state = "finished" if open_run(run).finished else "unfinished"
    if not yes:
        if not sys.stdin.isatty():
            raise ValueError(f"removing {run} needs a yes: run it on a terminal, or say --yes")
        if input(f"remove the {state} run {run}? [y/N] ").strip().lower() not in ("y", "yes"):
            print("kept")
            return 0
    shutil.rmtree(run)
    print(f"removed {run}")
    return 0
