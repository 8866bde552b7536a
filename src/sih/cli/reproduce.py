"""`sih reproduce`: everything that can be shown without training."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sih.experiments import predictors, style
from sih.files import atomic_write


def reproduce(out: Path = Path("out"), seed: int = 0) -> None:
    """Compare the reference predictors along the sequence; write the figure, its data and a table.

    Example: sih reproduce --out out

    Args:
        out: the folder to write to.
        seed: of the matrices and the sequences.
    """
    console = Console(soft_wrap=True, highlight=False)
    with console.status("comparing the predictors along the sequence"):
        curves = predictors.compute(predictors.Config(seed=seed))
    stem = out / predictors.NAME
    paths = style.save(predictors.draw(curves), stem)
    with atomic_write(stem.with_suffix(".json")) as file:
        file.write(json.dumps(curves.to_dict()).encode())
    rows = predictors.table(curves)
    with atomic_write(stem.with_suffix(".csv")) as file:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        file.write(text.getvalue().encode())
    shown = Table(title="Mean KL to the true next-token law, in nats (± standard error over matrices)")
    for column in rows[0]:
        shown.add_column(column, justify="left" if column == "predictor" else "right")
    for row in rows[1:]:
        shown.add_row(*row)
    console.print(shown)
    for path in (*paths, stem.with_suffix(".json"), stem.with_suffix(".csv")):
        console.print(f"wrote {path}")
