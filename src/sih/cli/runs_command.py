"""`sih runs`: the training runs on disk, listed, plotted, removed."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import torch
import tyro

from sih.cli.printing import plain_console
from sih.cli.run_tables import WIDTH, Row, fresh_quality, print_fitting, print_ways, shape_of
from sih.cli.train_command import explicit_command
from sih.runs.run import Run, list_runs
from sih.runs.run_store import open_run
from sih.task import sample
from sih.training.how_trained import how_trained

WATCHED = 32
"""Sequences that a run's heads are watched on."""


def runs(folder: Annotated[Path, tyro.conf.Positional] = Path("runs"), seed: int = 0) -> None:
    """List the runs in a folder, side by side: how they are trained, how far they are and how good.

    Example: sih runs runs

    KL, ML and BMA are means on the held-out sequences that training watches, and held-out is the first divided by the
    second. KL/ML is on fresh sequences, with two standard errors (`sih runs evaluate --keep`).

    Args:
        folder: the folder that holds the runs' folders.
        seed: unused; a list is not random.
    """
    rows, readable = [], []
    for run in list_runs(folder):
        try:
            rows.append(_row(run))
            readable.append(run)
        except ValueError as error:  # a bad neighbour hides no other
            print(f"sih: {error}", file=sys.stderr)
    if not any(row["KL/ML"] for row in rows):
        rows = [{name: cell for name, cell in row.items() if name not in ("KL/ML", "±")} for row in rows]
    console = plain_console(WIDTH, wrap=False)
    print_fitting(rows, f"Runs in {folder}; held-out is KL/ML on the held-out sequences", console)
    print_ways(readable, console)


def _row(run: Run) -> Row:
    seconds = run.environment.get("seconds")
    row = {**shape_of(run), "steps": _progress(run), "seconds": f"{seconds:.0f}" if seconds is not None else ""}
    losses = [line["loss"] for line in run.metrics if "loss" in line]
    row["loss"] = f"{losses[-1]:.4f}" if losses else ""
    row |= dict.fromkeys(("KL", "ML", "BMA", "held-out"), "")
    if run.evaluations:
        first, last = run.evaluations[0], run.evaluations[-1]
        numbers = (last["kl"], first["ml"], first["bma"])
        row |= dict(zip(("KL", "ML", "BMA"), (f"{number:.4f}" for number in numbers), strict=True))
        row["held-out"] = f"{run.held_out_kl_over_ml:.2f}"
    return row | fresh_quality(run)


def _progress(run: Run) -> str:
    step = run.metrics[-1]["step"] if run.metrics else 0
    return f"{step:,}" if run.finished else f"{step:,} of {run.config.optimiser.steps:,}"


def show(
    run: Annotated[str, tyro.conf.Positional], out: Path | None = None, period: int | None = None, seed: int = 0
) -> None:
    """Print how a run was trained, how good its model is and where its heads look. With --out, draw loss and KL too.

    Example: sih runs show runs/flagship --out flagship

    Args:
        run: a run's folder, or the name of a shipped model.
        out: draw loss and KL, beside maximum likelihood's and the Bayes average's, here: a path without an ending.
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
    for line in _facts(found):
        console.print(line)
    task = found.task
    tokens = sample(task, WATCHED, rng=torch.Generator().manual_seed(seed)).tokens
    with torch.no_grad():
        attention = found.model.trace(tokens).attention
    for head in masses_by_offset(attention, period or task.max_lag - task.min_lag + 1):
        console.print(str(head))
    if attention:
        correlation = probability_correlation(attention[0][:, 0], tokens, task)
        alike = "attention of head 1.1 at the lags, correlation with the normalised probabilities"
        console.print(f"{alike}: {correlation:.2f}")
    if out is not None:
        for path in style.save(draw_training(found), out):
            console.print(f"wrote {path}")


def _facts(run: Run) -> Iterator[str]:
    """Say in lines what a run trained, how, and how good its model is."""
    config, first, last = run.config, run.evaluations[0], run.evaluations[-1]
    lags, heads, length = list(config.task.lags), list(config.heads), config.task.length
    yield f"{run.name}: {config.model.kind}, lags {lags}, heads {heads}, length {length}, seed {config.seed}"
    yield f"trained by {how_trained(config)}"
    yield f"made by: {explicit_command(config)}"
    seconds = run.environment.get("seconds")
    yield f"steps: {_progress(run)}{f', {seconds:,.0f} s' if seconds is not None else ''}"
    if run.evaluation is not None:
        found = run.evaluation
        numbers = f"KL {found.kl.with_error()}, ML {found.ml.with_error()}, BMA {found.bma.with_error()}"
        yield f"on {found.sequences:,} fresh sequences: KL/ML {found.kl_over_ml.with_error()} ({numbers})"
        windows = (f"{each.label} tokens {each.kl_over_ml.mean:.3g}" for each in found.windows)
        yield f"KL/ML by the number of tokens seen: {', '.join(windows)}"
    means = f"KL {last['kl']:.4f}, ML {first['ml']:.4f}, BMA {first['bma']:.4f}"
    held_out = config.evaluation.held_out
    yield f"on the {held_out} held-out sequences of training: KL/ML {run.held_out_kl_over_ml:.2f} ({means})"


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
