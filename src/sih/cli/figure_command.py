"""`sih figure`: make one figure, of the paper or beyond it, by name."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from sih.cli.figure_flags import asked, check_has_models, figure_in, with_figure_flags
from sih.cli.printing import fits, plain_console, table_of
from sih.report import subjects
from sih.report.page import number, span
from sih.results.judging import Finding
from sih.results.pictures import Made, make
from sih.results.tables import Rows
from sih.training.runs.run_store import RunStore


def start_from(words: list[str]) -> tuple[Callable[..., None], list[str]]:
    """Return `figure` with the flags of the figure that a command line names."""
    figures = subjects.figures(subjects.SUBJECTS)
    name = figure_in(words, figures)
    config = None if name is None else subjects.figure_named(name, figures).experiment.config
    return with_figure_flags(figure, config), words


def figure(
    name: Annotated[str | None, tyro.conf.Positional] = None,
    out: Path = Path("out"),
    runs: Path | None = None,
    list_names: Annotated[bool, tyro.conf.arg(name="list")] = False,
    **given: Any,
) -> None:
    """Make one figure, with its data and table, and judge the paper's statements on it.

    Example: sih figure constructions --states 10 --lags 1 2 3 --length 64 --out out

    Each figure has its own flags for its task; `sih figure constructions --help` lists
    them. A figure of another task is written as NAME-DIGEST, next to the paper's, and
    no statement is judged on it. An existing figure with the same configuration, models
    and source is not made again.

    Args:
        name: Name of the figure; --list shows all.
        out: The folder to write to: figures/NAME.pdf .svg .png, data/NAME.json .npz
            .csv.
        runs: Folder of training runs that is searched for models first. Default:
            OUT/runs.
        list_names: List the figures instead, one per line.
    """
    figures = subjects.figures(subjects.SUBJECTS)
    if list_names:
        longest = max(map(len, figures))
        for each in figures.values():
            print(f"{each.name:<{longest}}  {_short(each.caption, 78 - longest)}")
        return
    if name is None:
        raise ValueError(
            "name a figure, e.g. sih figure constructions. `sih figure --list` lists all"
        )
    paper = subjects.figure_named(name, figures)
    store = RunStore(out / "runs" if runs is None else runs)
    wanted = asked(paper, given)
    check_has_models(wanted, paper, store)
    made = make(wanted, out, store)
    if made.result.missing:
        raise ValueError(
            f"figure {name} {made.result.missing}; `sih reproduce --train` trains what is missing"
        )
    console = plain_console(160)
    show(made, console)
    if wanted is not paper:
        console.print(f"{wanted.name}: {wanted.caption}", style=None)
        console.print(f"{wanted.name} is of another task than {name}: no statement is judged on it")


def _short(caption: str, width: int) -> str:
    """Return the beginning of a caption, in whole words: its first sentence if that is
    short enough.
    """
    sentence = caption.partition(". ")[0].partition(" (")[0].rstrip(".")
    return textwrap.shorten(sentence, width, placeholder=" ...", break_on_hyphens=False)


def show(made: Made[Any], console: Console) -> None:
    """Print a figure's table, its models, its statements, and the files."""
    result = made.result
    rows = made.figure.table(result.data)
    if rows:
        show_table(rows, console)
    for model, source in result.models.items():
        console.print(f"read {model} ({source})")
    resting = subjects.resting_on(result.experiment, subjects.SUBJECTS)
    say([subjects.judge(one, result) for one in resting], console)
    for path in (*made.pictures, *result.files, *made.tables):
        console.print(f"wrote {path}" if made.drawn else f"kept {path}")


def show_table(rows: Rows, console: Console) -> None:
    """Print a table if the console is wide enough for it."""
    table = table_of(rows)
    if fits(table, console):
        console.print(table)
    else:
        size = f"{len(rows) - 1} rows of {len(rows[0])} columns"
        console.print(f"its table, {size}, is too wide to print here: see the .csv")


def say(findings: Iterable[Finding], console: Console) -> None:
    """Print one line per statement: the measurement and the verdict."""
    for one in findings:
        asked, found = one.statement, one.measured
        value = f" {number(found.value)}{span(found.interval)} {asked.unit}" if found else ""
        count = f" ({one.count} hold)" if one.count and asked.models else ""
        console.print(f"{asked.id} ({asked.section}):{value} -> {one.verdict}{count}", style=None)
