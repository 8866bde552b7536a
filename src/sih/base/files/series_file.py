"""Categorical series read from text, CSV or FASTA files, as numbers."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sih.base.errors import FieldError, check_choice
from sih.base.files.reading import reading

FORMATS = ("text", "csv", "fasta")
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".fa": "fasta",
    ".fasta": "fasta",
    ".fna": "fasta",
    ".faa": "fasta",
}
MISSING = ("", "?", "NA", "NaN", "nan", "null")
"""Words for a missing symbol. In FASTA also N, X, - and the like, for "any" or a
gap."""
FASTA_MISSING = ("N", "X", "-", ".", "*")
MOST = 256
"""Largest number of different symbols in a file. A file with more has numbers, or
prose."""


@dataclass(frozen=True)
class SeriesFile:
    """The series of a file as numbers of symbols, -1 if missing.

    `parts` may differ in length.
    """

    symbols: tuple[str, ...]
    parts: list[list[int]]


def read_series(
    path: str | Path,
    *,
    format: str | None = None,
    symbols: Sequence[str] | None = None,
    column: str | None = None,
) -> SeriesFile:
    """Return the series of symbols in a file.

    A text file has one series per line, of words if the line has spaces and otherwise
    of characters. A CSV file has one series per column, with names in the first row. A
    FASTA file has one series per record, in capitals.

    Args:
        path: the file.
        format: "text", "csv" or "fasta". Default: by the suffix of the name.
        symbols: the symbols, in this order; others count as missing. Default: all that
            occur.
        column: the column of a CSV file, by its name or its number from 1. Default: the
            only one.

    Returns:
        The series, and the symbols that their numbers stand for.
    """
    path = Path(path)
    format = SUFFIXES.get(path.suffix.lower(), "text") if format is None else format
    check_choice("format", format, FORMATS)
    if column is not None and format != "csv":
        raise FieldError("column", f"a column is of a CSV file; {path} is read as {format}")
    with reading(path, "is not text"):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    readers = {
        "fasta": lambda: _fasta(lines, path),
        "csv": lambda: _csv(lines, path, column),
        "text": lambda: _text(lines),
    }
    parts = readers[format]()
    missing = {*MISSING, *(FASTA_MISSING if format == "fasta" else ())}
    found = sorted({symbol for part in parts for symbol in part} - missing)
    if symbols is None and len(found) > MOST:
        hint = "symbols are few; say which with symbols, or make classes of numbers first"
        raise ValueError(
            f"{path} has {len(found):,} different symbols, e.g. {', '.join(found[:3])}: {hint}"
        )
    chosen = tuple(found if symbols is None else symbols)
    if len(set(chosen)) != len(chosen) or len(chosen) < 2 or not set(chosen) & set(found):
        raise FieldError(
            "symbols",
            f"a series has two different symbols or more; {path} has {', '.join(found[:8]) or 'none'}"
            + (f", asked for are {', '.join(chosen)}" if symbols is not None else ""),
        )
    number = {symbol: n for n, symbol in enumerate(chosen)}
    return SeriesFile(chosen, [[number.get(symbol, -1) for symbol in part] for part in parts])


def _text(lines: Iterable[str]) -> list[list[str]]:
    return [
        line.split() if " " in line or "\t" in line else list(line)
        for line in map(str.strip, lines)
        if line
    ]


def _fasta(lines: Sequence[str], path: Path) -> list[list[str]]:
    parts: list[list[str]] = []
    for line in lines:
        if line.startswith(">"):
            parts.append([])
        elif parts:
            parts[-1] += line.strip().upper()
        elif line.strip():
            raise ValueError(
                f"{path} is not FASTA: a record begins with a line like '>name', the file with {line[:20]!r}"
            )
    return [part for part in parts if part]


def _csv(lines: Sequence[str], path: Path, column: str | None) -> list[list[str]]:
    with reading(path, "is not a CSV file"):
        rows = list(csv.reader(lines, delimiter="\t" if "\t" in "".join(lines[:1]) else ","))
    header = [name.strip() for name in rows[0]] if rows else []
    if column is None and len(header) == 1:
        index = 0
    elif column in header:
        index = header.index(str(column))
    elif column is not None and column.isdecimal() and 1 <= int(column) <= len(header):
        index = int(column) - 1
    else:
        said = f"got {column!r}" if column is not None else "say which"
        raise FieldError(
            "column", f"{path} has the columns {', '.join(header[:12]) or '(none)'}; {said}"
        )
    return [[row[index].strip() if index < len(row) else "" for row in rows[1:]]]
