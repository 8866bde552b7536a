"""`sih figure`: make one figure of the paper, or of ours, by name."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from sih.cli.printing import fits, plain_console, table_of
from sih.experiments.table import EXPERIMENTS, experiment_named
from sih.figures.drawn import Drawn, make
from sih.report.page import number, span
from sih.report.statements import resting_on
from sih.results.judging import Finding
from sih.runs.run_store import RunStore


def figure(
    name: Annotated[str | None, tyro.conf.Positional] = None,
    out: Path = Path("out"),
    runs: Path | None = None,
    list_names: Annotated[bool, tyro.conf.arg(name="list")] = False,
    seed: int | None = None,
) -> None:
    """Make one figure, with its data and table, and judge the statements of the paper that rest on it.

    Example: sih figure constructions --out out

    What is in the folder already, made from the same configuration, models and source, is not made again.

    Args:
        name: of the figure; --list shows them all.
        out: the folder to write to: figures/NAME.pdf .svg .png, data/NAME.json and .csv.
        runs: a folder of training runs in which models are looked for first (OUT/runs unless said).
        list_names: only list the names.
        seed: of matrices and sequences, instead of the figure's own.
    """
    if list_names:
        print("\n".join(EXPERIMENTS))
        return
    if name is None:
        raise ValueError(f"which figure? One of {', '.join(EXPERIMENTS)}")
    experiment = experiment_named(name)
    store = RunStore(out / "runs" if runs is None else runs)
    drawn = make(experiment if seed is None else experiment.with_seed(seed), out, store)
    if drawn.kept.missing:
        raise ValueError(
            f"figure {name} {drawn.kept.missing}; `sih reproduce --train` trains what is missing"
        )
    show(drawn, plain_console(160))


def show(drawn: Drawn, console: Console) -> None:
    """Print its table, the models it read, the statements that rest on it, and the files."""
    kept = drawn.kept
    rows = kept.experiment.table(kept.data)
    if rows:
        table, size = table_of(rows), f"{len(rows) - 1} rows of {len(rows[0])} columns"
        console.print(
            table
            if fits(table, console)
            else f"its table, {size}, is too wide to print here: see the .csv"
        )
    for model, source in kept.models.items():
        console.print(f"read {model} ({source})")
    say(resting_on(kept), console)
    for path in (*drawn.figures, *kept.files):
        console.print(f"wrote {path}" if drawn.new else f"kept {path}")


def say(findings: list[Finding], console: Console) -> None:
    """Print one line for each statement: what was measured, and the verdict."""
    for one in findings:
        asked, found = one.statement, one.measured
        measured = (
            "" if found is None else f" {number(found.value)}{span(found.interval)} {asked.unit}"
        )
        count = f" ({one.count} hold)" if one.count and asked.models else ""
        console.print(
            f"{asked.id} ({asked.section}):{measured} -> {one.verdict}{count}", style=None
        )
