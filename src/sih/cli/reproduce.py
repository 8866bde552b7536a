"""`sih reproduce`: everything that can be shown without training."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sih.experiments import constructions, predictors, style
from sih.files import atomic_write


def reproduce(out: Path = Path("out"), seed: int = 0) -> None:
    """Compare predictors and hand-written circuits along the sequence; write figures, their data and tables.

    Example: sih reproduce --out out

    Args:
        out: the folder to write to.
        seed: of the matrices and the sequences.
    """
    console = Console(soft_wrap=True, highlight=False)
    with console.status("comparing the predictors along the sequence"):
        found = predictors.compute(predictors.Config(seed=seed))
    paths = style.save(predictors.draw(found), out / predictors.NAME)
    paths += _write(out / predictors.NAME, found.to_dict(), predictors.table(found))
    _show(
        console, "Mean KL to the true next-token law, in nats (± standard error over matrices)", predictors.table(found)
    )
    with console.status("running the circuits written by hand"):
        circuits = constructions.compute(constructions.Config(seed=seed))
    paths += style.save(constructions.draw(circuits), out / constructions.NAME)
    paths += _write(out / constructions.NAME, circuits.to_dict(), constructions.table(circuits))
    _show(
        console, "The same for circuits run as weights (T = 128, lam = 500, beta = 100)", constructions.table(circuits)
    )
    _show(console, "KL of the construction minus that of ML, after so many tokens", constructions.against_ml(circuits))
    for path in paths:
        console.print(f"wrote {path}")


def _write(stem: Path, data: dict[str, object], rows: list[list[str]]) -> list[Path]:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    contents = {stem.with_suffix(".json"): json.dumps(data), stem.with_suffix(".csv"): text.getvalue()}
    for path, content in contents.items():
        with atomic_write(path) as file:
            file.write(content.encode())
    return list(contents)


def _show(console: Console, title: str, rows: list[list[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(rows[0]):
        table.add_column(column, justify="left" if index == 0 else "right")
    for row in rows[1:]:
        table.add_row(*row)
    console.print(table)
