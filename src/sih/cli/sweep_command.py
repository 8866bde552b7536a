"""`sih sweep`: train every run of a grid, on this machine or on a Ray cluster, and
count the successes.
"""

import os
import statistics
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from sih.base.errors import check_device, check_sizes
from sih.beyond.sweep.grid import Grid, read_grid
from sih.beyond.sweep.local import run_here
from sih.beyond.sweep.ray_cluster import run_on_ray
from sih.beyond.sweep.results import FORMATIONS, write_formations, write_results
from sih.beyond.sweep.success_rates import SUCCESS, success_rates
from sih.beyond.sweep.worker import Job, News
from sih.cli.printing import plain_console, table_of
from sih.cli.train_command import on_stop
from sih.training.config_file import to_json
from sih.training.runs.run import CHECKPOINT, Run


def sweep(
    grid: Annotated[Path, tyro.conf.Positional],
    out: Path,
    jobs: int | None = None,
    ray: str | None = None,
    device: str = "cpu",
    keep_every: int | None = None,
) -> int:
    """Train every run of a grid. The same command resumes a stopped sweep, and repeats
    no finished run.

    Example: sih sweep grid.toml --out sweep

    The grid is a TOML file with the names of `sih train`'s flags. [base] has the fields
    that all runs share, and [grid] has lists, of which every combination is run. Each
    run uses one thread and its own folder; a failed run stops no other. The command
    writes OUT/results.csv and OUT/success.png, and with --keep-every OUT/formation.csv.

    Args:
        grid: The grid's file.
        out: The folder of the runs and results.
        jobs: Number of runs at a time on this machine. Default: one per core.
        ray: Address of a Ray cluster with a shared folder, or "local" (needs the extra
            "cluster").
        device: Device to compute on, cpu or cuda.
        keep_every: Also save the weights every N steps, in each run's subfolder kept;
            runs that are already finished keep none.
    """
    found = read_grid(grid)
    if jobs is not None and jobs < 1:
        raise ValueError(f"--jobs is a whole number, at least 1; got {jobs}")
    if keep_every is not None:
        check_sizes(keep_every=keep_every)
    check_device(device)
    console = plain_console(160, wrap=False)
    finished = {
        name
        for name in found.runs
        if Run(out / name).finished and not (out / name / CHECKPOINT).exists()
    }
    todo = [
        _job(found, name, out, device, keep_every) for name in found.runs if name not in finished
    ]
    write_results(found, out, {})
    noun = "run" if len(found.runs) == 1 else "runs"
    console.print(f"{len(found.runs)} {noun}, {len(finished)} of them finished already -> {out}")
    failed: dict[str, str] = {}
    news = run_on_ray(todo, ray) if ray else run_here(todo, jobs or os.cpu_count() or 1)
    show = _bar if console.is_terminal else _lines
    with (
        on_stop(_interrupt),
        closing(news),
    ):  # after an early end, e.g. by Ctrl-C, the workers save their state
        try:
            for each in show(news, found, finished, console):
                if each.state == "failed":
                    failed[each.name] = each.why
                if each.state != "running":
                    write_results(found, out, failed)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"what is done is kept in {out}; the same command resumes it"
            ) from None
    if keep_every is not None:
        write_formations(found, out)
        console.print(f"wrote {out / FORMATIONS}")
    return _summary(found, out, failed, console)


def _interrupt(number: int, _: object) -> None:
    raise KeyboardInterrupt


def _job(grid: Grid, name: str, out: Path, device: str, keep_every: int | None) -> Job:
    config = grid.runs[name]
    path = config.model.build(config.task.states, config.task.length).usual_path()
    folder = str((out / name).resolve())
    return Job(name, to_json(config), folder, path, device, keep_every=keep_every)


def _bar(news: Iterable[News], grid: Grid, finished: set[str], console: Console) -> Iterator[News]:
    """Yield the news, and show on a terminal the steps of all runs, with a bar for each
    active one.
    """
    steps = {name: config.optimiser.steps for name, config in grid.runs.items()}
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        ended = sum(steps[name] for name in finished)
        whole = progress.add_task("steps of all runs", total=sum(steps.values()), completed=ended)
        bars: dict[str, TaskID] = {}
        at: dict[str, int] = {}
        for each in news:
            if each.name not in bars:
                bars[each.name] = progress.add_task(each.name, total=steps[each.name])
            at[each.name] = steps[each.name] if each.state == "failed" else each.step
            progress.update(bars[each.name], completed=each.step)
            progress.update(whole, completed=ended + sum(at.values()))
            if each.state != "running":
                progress.remove_task(bars.pop(each.name))
                progress.print(_said(each))
            yield each


def _lines(
    news: Iterable[News], grid: Grid, finished: set[str], console: Console
) -> Iterator[News]:
    """Yield the news, and print one line per run that has ended."""
    count = len(finished)
    for each in news:
        if each.state != "running":
            count += 1
            console.print(f"{count} of {len(grid.runs)}: {_said(each)}")
        yield each


def _said(news: News) -> str:
    return f"{news.name} {news.state} at step {news.step:,}{': ' + news.why if news.why else ''}"


def _summary(grid: Grid, out: Path, failed: dict[str, str], console: Console) -> int:
    from sih.beyond.sweep import success_rates_figure
    from sih.results import style

    rates = success_rates(write_results(grid, out, failed))
    rows = [
        ["setting", "runs", "succeed", "95 % interval", "held-out KL / ML", "core-seconds a run"]
    ]
    for each in rates.settings:
        low, high = each.interval
        rate = f"{100 * each.succeeded / each.runs:.0f} %" if each.runs else ""
        seconds = "" if each.core_seconds is None else f"{each.core_seconds:.0f}"
        middle = f"{statistics.median(each.ratios):.2f} (median)" if each.ratios else ""
        rows.append(
            [
                each.label,
                f"{each.runs}",
                rate,
                f"{100 * low:.0f} to {100 * high:.0f} %",
                middle,
                seconds,
            ]
        )
    title = f"Success: held-out KL at most {SUCCESS:g} x maximum likelihood's"
    console.print(table_of(rows, title, overflow="fold"))
    for path in style.save(success_rates_figure.draw(rates), out / "success"):
        console.print(f"wrote {path}")
    for name, why in failed.items():
        print(f"sih: {name} failed: {why}", file=sys.stderr)
    return 1 if failed else 0
