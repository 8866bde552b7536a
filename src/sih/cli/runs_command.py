"""`sih runs`: list, show and remove the training runs on disk."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import tyro

from sih.base.errors import FieldError
from sih.cli.printing import plain_console
from sih.cli.run_tables import WIDTH, Row, fresh_quality, print_fitting, print_ways, shape_of
from sih.cli.train_command import explicit_command
from sih.report.model_zoo import entry, listing
from sih.task import Task, sample
from sih.training.how_trained import how_trained
from sih.training.runs.run import Run, list_runs
from sih.training.runs.run_store import open_run

READ = 512
"""Sequences on which a run's heads are measured."""


def runs(
    folder: Annotated[Path, tyro.conf.Positional] = Path("runs"),
    as_json: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> None:
    """List the runs in a folder side by side: how each was trained, its progress and
    its quality.

    Example: sih runs runs

    KL, ML and BMA are means on training's held-out sequences, and held-out is the ratio
    of the first two. KL/ML is on fresh sequences, with two standard errors
    (`sih runs evaluate --keep`).

    Args:
        folder: The folder that holds the runs' folders.
        as_json: Print one JSON document with every number.
    """
    if as_json:
        print(listing("runs", list(_entries(folder))))
        return
    rows, readable = [], []
    for run in list_runs(folder):
        try:
            rows.append(_row(run))
            readable.append(run)
        except ValueError as error:  # one unreadable run hides no other
            print(f"sih: {error}", file=sys.stderr)
    if not any(row["KL/ML"] for row in rows):
        rows = [
            {name: cell for name, cell in row.items() if name not in ("KL/ML", "±")} for row in rows
        ]
    console = plain_console(WIDTH, wrap=False)
    print_fitting(rows, f"Runs in {folder}\nheld-out: KL/ML on the held-out sequences", console)
    print_ways(readable, console)


def _entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the runs of a folder as `--json` prints them. Unreadable ones are reported
    on standard error.
    """
    for run in list_runs(folder):
        try:
            measured = run.evaluations
            yield {
                **entry(run),
                "finished": run.finished,
                "step": run.metrics[-1]["step"] if run.metrics else 0,
                "seconds": run.environment.get("seconds"),
                "held_out_kl": measured[-1]["kl"] if measured else None,
                "held_out_kl_over_ml": run.held_out_kl_over_ml if measured else None,
            }
        except ValueError as error:
            print(f"sih: {error}", file=sys.stderr)


def _row(run: Run) -> Row:
    seconds = run.environment.get("seconds")
    row = {
        **shape_of(run),
        "steps": _progress(run),
        "seconds": f"{seconds:.0f}" if seconds is not None else "",
    }
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


def show(run: Annotated[str, tyro.conf.Positional], out: Path | None = None, seed: int = 0) -> None:
    """Print how a run was trained, how good its model is and the role of each head.
    With --out, also draw loss and KL.

    Example: sih runs show runs/flagship --out flagship

    Args:
        run: A run's folder, or the name of a shipped model.
        out: Also draw loss and KL, beside those of maximum likelihood and exact
            inference, to this path without suffix.
        seed: Random seed for the sequences on which the heads are read.
    """
    from sih.results import style
    from sih.results.plots.run import draw_training

    found = open_run(run)
    console = plain_console()
    if not found.evaluations:
        raise ValueError(f"{run} has nothing to show yet: it has no metrics")
    for line in [*_facts(found), *_heads(found, seed)]:
        console.print(line)
    if out is not None:
        for path in style.save(draw_training(found), out):
            console.print(f"wrote {path}")


def _heads(run: Run, seed: int) -> list[str]:
    """Return lines on the role of each head, from `sih.diagnose` on the same sequences."""
    from sih.beyond.diagnosis.diagnosis import diagnose

    try:
        task = run.task
    except FieldError as error:  # a custom task, which no file contains
        return [f"heads are not read: {error}"]
    if not isinstance(task, Task):
        return [
            f"heads are read for tasks of one matrix and one lag only; this is {type(task).__name__}"
        ]
    if not run.config.heads or task.length < task.max_lag + 2:
        return []
    found = diagnose(task, sample(task, READ, rng=seed), model=run.model)
    queries = f"queries {task.max_lag} to {task.length - 2}"
    same = f"sih.diagnose(run.task, sih.sample(run.task, {READ}, rng={seed}), model=run.model)"
    return [f"heads on {READ} sequences, {queries}, as by {same}:", *found.head_lines()]


def _facts(run: Run) -> Iterator[str]:
    """Return lines on a run's task, training and quality."""
    config, first, last = run.config, run.evaluations[0], run.evaluations[-1]
    task, heads = config.task, list(config.heads)
    shape = f"{config.model.kind}, {task.in_words}, heads {heads}, length {task.length}"
    yield f"{run.name}: {shape}, seed {config.seed}"
    yield f"trained by: {how_trained(config)}"
    yield f"command: {explicit_command(config)}"
    seconds = run.environment.get("seconds")
    yield f"steps: {_progress(run)}{f', {seconds:,.0f} s' if seconds is not None else ''}"
    if run.evaluation is not None:
        found = run.evaluation
        numbers = (
            f"KL {found.kl.with_error()}, ML {found.ml.with_error()}, BMA {found.bma.with_error()}"
        )
        yield f"on {found.sequences:,} fresh sequences: KL/ML {found.kl_over_ml.with_error()} ({numbers})"
        windows = (f"{each.label} tokens {each.kl_over_ml.with_error()}" for each in found.windows)
        yield f"KL/ML by the number of tokens seen: {', '.join(windows)}"
        yield found.verdict
    if run.formation is not None:
        yield f"formation: {run.formation.in_words}"
    means = f"KL {last['kl']:.4f}, ML {first['ml']:.4f}, BMA {first['bma']:.4f}"
    held_out = config.evaluation.held_out
    yield f"on the {held_out} held-out sequences of training: KL/ML {run.held_out_kl_over_ml:.2f} ({means})"


def remove(run: Annotated[Path, tyro.conf.Positional], yes: bool = False) -> int:
    """Remove a run's folder, after asking.

    Example: sih runs rm runs/flagship

    Args:
        run: The run's folder.
        yes: Remove it without asking.
    """
    if not run.is_dir():
        raise ValueError(f"there is no folder {run}")
    state = "finished" if open_run(run).finished else "unfinished"
    if not yes:
        if not sys.stdin.isatty():
            raise ValueError(f"removing {run} needs a yes: run it on a terminal, or give --yes")
        if input(f"remove the {state} run {run}? [y/N] ").strip().lower() not in ("y", "yes"):
            print("kept")
            return 0
    shutil.rmtree(run)
    print(f"removed {run}")
    return 0
