"""Shows progress on standard error: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
SECONDS_A_LINE = 10.0


def track(items: Iterable[Item], total: int, what: str, done: int = 0) -> Iterator[Item]:
    """Pass the items on, and count them from `done` up to `total`."""
    return (_bar if sys.stderr.isatty() else _lines)(items, total, what, done)


def _bar(items: Iterable[Item], total: int, what: str, done: int) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False, emoji=False)) as progress:
        task = progress.add_task(what, total=total, completed=done)
        for item in items:
            yield item
            progress.advance(task)


def _lines(items: Iterable[Item], total: int, what: str, done: int) -> Iterator[Item]:
    said, began = time.monotonic(), time.monotonic()
    for passed, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - said >= SECONDS_A_LINE or done + passed == total:
            left = (now - began) / passed * (total - done - passed)
            print(f"{what}: {done + passed} of {total}, about {left:.0f} s left", file=sys.stderr, flush=True)
            said = now
