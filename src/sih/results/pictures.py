"""A figure on disk, drawn once.

    OUT/figures/NAME.pdf .svg .png
    OUT/data/NAME.csv             its table, if it has one
    OUT/data/NAME.drawn.json      digests of its sources and files, and its caption

After a change of legend, caption or table, the figure is redrawn and nothing is
recomputed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic

from sih.base.files import read_json, write_json, write_rows
from sih.results import sources
from sih.results.cache import Result, compute_once, look_up
from sih.results.data import digest_of
from sih.results.experiment import Data
from sih.results.figure import Figure
from sih.results.processes import on_all_cores
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True, eq=False)
class Made(Generic[Data]):
    """A figure with its result and its files; no files if there is no data."""

    figure: Figure[Data]
    result: Result[Data]
    pictures: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()
    drawn: bool = False
    """Whether it was drawn just now."""

    @property
    def png(self) -> Path | None:
        """Return the picture as a PNG, None if there is no data."""
        return next((path for path in self.pictures if path.suffix == ".png"), None)


def make(figure: Figure[Data], out: Path, store: RunStore) -> Made[Data]:
    """Compute the data and draw the figure, each only if necessary."""
    result = compute_once(figure.experiment, out, store)
    if result.data is None:
        return Made(figure, result)
    rows = figure.table(result.data)
    tables = (out / "data" / f"{figure.name}.csv",) if rows else ()
    for path in tables:
        write_rows(path, rows)
    pictures = look_up_pictures(figure, result, out)
    if pictures is not None:
        return Made(figure, result, pictures, tables)
    return Made(figure, result, draw_files(figure, result, out), tables, drawn=True)


def make_all(
    figures: Sequence[Figure[Any]], out: Path, store: RunStore, jobs: int | None = None
) -> Iterator[Made[Any]]:
    """Yield each figure as soon as it exists: stored ones at once, the others from
    `jobs` processes (one core each).
    """
    waiting = []
    for figure in figures:
        if is_made(figure, out, store):
            yield make(figure, out, store)
        else:
            waiting.append(figure)
    try:
        for figure, computed, drawn in on_all_cores(partial(_made, out, store), waiting, jobs):
            made = make(figure, out, store)
            result = replace(made.result, computed=computed)
            yield replace(made, result=result, drawn=drawn)
    except BaseException:
        leftovers = out.glob("*/.*.part")  # of files that a process was writing when it was stopped
        for leftover in leftovers:
            leftover.unlink()
        raise


def _made(out: Path, store: RunStore, figure: Figure[Any]) -> tuple[Figure[Any], bool, bool]:
    """Make a figure, and return a summary.

    Its data stays on disk, since every tensor sent between processes would become a
    file.
    """
    made = make(figure, out, store)
    return figure, made.result.computed, made.drawn


def is_made(figure: Figure[Any], out: Path, store: RunStore) -> bool:
    """Return whether `make` would neither compute nor draw."""
    result = look_up(figure.experiment, out, store)
    if result is None:
        return False
    return result.data is None or look_up_pictures(figure, result, out) is not None


def draw_files(figure: Figure[Any], result: Result[Any], out: Path) -> tuple[Path, ...]:
    """Draw the figure, write its files, and record the digests of its sources."""
    from sih.results import style  # matplotlib, which nothing else here needs

    files = tuple(style.save(figure.draw(result.data), out / "figures" / figure.name))
    note = {**drawn_from(figure, result, out, files), "caption": figure.caption}
    write_json(note_file(figure, out), note)
    return files


def look_up_pictures(
    figure: Figure[Any], result: Result[Any], out: Path
) -> tuple[Path, ...] | None:
    """Return the figure's files, or None if they are outdated or were changed."""
    try:
        written = read_json(note_file(figure, out))
        files = tuple(out / name for name in written["files"])
        now = drawn_from(figure, result, out, files)
        return files if now == {name: written[name] for name in now} else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def drawn_from(
    figure: Figure[Any], result: Result[Any], out: Path, files: tuple[Path, ...]
) -> dict[str, Any]:
    """Return the digest of everything that the picture depends on, and the digests of
    its files.
    """
    inputs = [result.digest, sources.digest(figure.drawing), version("matplotlib")]
    digests = {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    return {"key": digest_of(inputs), "files": digests}


def note_file(figure: Figure[Any], out: Path) -> Path:
    """Return the file that records the sources of the pictures."""
    return out / "data" / f"{figure.name}.drawn.json"
