"""Tables of runs, as wide as the terminal: columns that do not fit are omitted, and no
word is broken.
"""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from sih.cli.printing import WIDEST, table_of
from sih.training.how_trained import how_trained, trained_briefly
from sih.training.runs.run import Run

Row = dict[str, str]
"""Cells by the name of their column."""
LAST_TO_GO = (
    "KL/ML",
    "held-out",
    "trained",
    "length",
    "±",
    "heads",
    "lags",
    "steps",
    "model",
    "KL",
    "ML",
    "BMA",
    "loss",
)
"""The columns beside the name, in the order in which they are omitted, last first."""
WORDS = {"run", "model", "lags", "heads", "trained"}
"""The columns of words, which are aligned left."""
WIDTH = 160
"""Width of the output if it is no terminal."""


def shape_of(run: Run) -> Row:
    """Return a run's task, model and training in a few cells."""
    config = run.config
    return {
        "run": run.name,
        "model": config.model.kind,
        "lags": " ".join(map(str, config.task.lags)) or config.task.label,
        "heads": " ".join(map(str, config.heads)),
        "length": f"{config.task.length}",
        "trained": trained_briefly(config),
    }


def fresh_quality(run: Run) -> Row:
    """Return KL/ML on fresh sequences and two standard errors, "" if no evaluation is
    stored.
    """
    if run.evaluation is None:
        return {"KL/ML": "", "±": ""}
    ratio = run.evaluation.kl_over_ml
    return {"KL/ML": f"{ratio.mean:.3f}", "±": f"{2 * ratio.error:.3f}"}


def print_fitting(rows: Sequence[Row], title: str, console: Console) -> None:
    """Print a table with as many columns as the console allows, then the names of the
    omitted ones.
    """
    shown = list(rows[0]) if rows else ["run"]
    order = sorted(
        shown[1:],
        key=lambda name: LAST_TO_GO.index(name) if name in LAST_TO_GO else len(LAST_TO_GO),
    )
    left_out: list[str] = []
    while order and _width(_table(rows, shown), console) > console.width:
        left_out.append(order.pop())
        shown.remove(left_out[-1])
    console.print(title, soft_wrap=True)
    console.print(_table(rows, shown, broken=not order))
    if left_out:
        console.print(f"no room for: {', '.join(reversed(left_out))} (a wider terminal shows them)")


def _width(table: Table, console: Console) -> int:
    """Return the width of a table without broken cells."""
    return Measurement.get(console, console.options.update(max_width=WIDEST), table).maximum


def _table(rows: Sequence[Row], shown: Sequence[str], broken: bool = False) -> Table:
    """Return a table of these columns. Only a name longer than a whole line may be
    `broken`.
    """
    table = table_of([shown, *([row[name] for name in shown] for row in rows)], overflow="fold")
    table.box, table.pad_edge, table.padding = None, False, (0, 2, 0, 0)
    for name, column in zip(shown, table.columns, strict=True):
        column.no_wrap = not broken
        column.justify = "left" if name in WORDS else "right"
    return table


def print_ways(found: Iterable[Run], console: Console) -> None:
    """Print the meaning of the words in the column `trained`, at each length."""
    lengths: dict[tuple[str, str], set[int]] = {}
    for run in found:
        way = (trained_briefly(run.config), how_trained(run.config))
        lengths.setdefault(way, set()).add(run.config.task.length)
    for (brief, whole), own in sorted(lengths.items()):
        console.print(f"{brief} (length {', '.join(map(str, sorted(own)))}): {whole}")
