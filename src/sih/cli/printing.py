"""Printing of commands: consoles and tables, which interpret no text as markup, and
progress.

Progress is on standard error: a bar on a terminal, otherwise an occasional plain line.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

Item = TypeVar("Item")
SECONDS_A_LINE = 10.0
WIDEST = 10_000
Left = Callable[[Item, float], float]
"""Function that returns the seconds left after an item, from the seconds since the
start."""


def plain_console(width: int | None = None, wrap: bool = True) -> Console:
    """Return a console that prints plain text, `width` columns wide if the output is no
    terminal.
    """
    width = None if sys.stdout.isatty() else width
    return Console(soft_wrap=wrap, highlight=False, markup=False, emoji=False, width=width)


def table_of(
    rows: Sequence[Sequence[str]], title: str | None = None, left: int = 1, **column: Any
) -> Table:
    """Return a table of a header and rows, with the first `left` columns aligned left
    and the others right.
    """
    table = Table(title=title, title_justify="left")
    for index, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if index < left else "right", **column)
    for row in rows[1:]:
        table.add_row(*row)
    return table


def fits(table: Table, console: Console) -> bool:
    """Return whether a console is wide enough for the table, with line breaks between
    words only.
    """
    return (
        Measurement.get(console, console.options.update(max_width=WIDEST), table).minimum
        <= console.width
    )


def track(
    items: Iterable[Item], total: int, what: str, done: int = 0, left: Left[Item] | None = None
) -> Iterator[Item]:
    """Yield the items, and show progress from `done` up to `total`. The time left is by
    their number, or by `left`.
    """
    return (_bar if sys.stderr.isatty() else _lines)(items, total, what, done, left)


def _bar(
    items: Iterable[Item], total: int, what: str, done: int, left: Left[Item] | None
) -> Iterator[Item]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    remaining = TimeRemainingColumn() if left is None else TextColumn("{task.fields[left]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), remaining)
    with Progress(*columns, console=Console(stderr=True, markup=False, emoji=False)) as progress:
        task = progress.add_task(what, total=total, completed=done, left="")
        began = time.monotonic()
        for item in items:
            yield item
            said = (
                "" if left is None else f"about {left(item, time.monotonic() - began):.0f} s left"
            )
            progress.update(task, advance=1, left=said)


def _lines(
    items: Iterable[Item], total: int, what: str, done: int, left: Left[Item] | None
) -> Iterator[Item]:
    said, began = time.monotonic(), time.monotonic()
    for passed, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        rest = left(item, now - began) if left else (now - began) / passed * (total - done - passed)
        if now - said >= SECONDS_A_LINE or done + passed == total:
            print(
                f"{what}: {done + passed} of {total}, about {rest:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
            said = now
