"""Tables of documents that are made from CSV files.

    python -m website.tables            writes them anew
    python -m website.tables --check    exit code 1 if one differs from its file

A document marks such a table, and what stands between the two marks is written:

    <!-- table research/a.csv where length=64 | run: `{run}` | KL/ML: {ratio:2}[ ± {error:2}] -->

    ...

    <!-- end table -->

The file's path begins at the root of the repository. Each part after the first is a column: its
heading and a template for its cells. `where COLUMN=VALUE; VALUE` keeps some rows, in this order, and
several such conditions may follow one another. A value that the file does not have is an error, unless
the word is `whenever`. A column that begins with `across` makes one column for each
value of its heading, a template too.

A template names columns of the file in braces. `{ratio:2}` has two decimals, `{steps:,}` marks
thousands, `{lags:set}` writes 1 2 3 as {1,2,3}, `{heads:list}` as [1,2,3]. Of a cell like .123±.004
`{kl:mean2}` is the mean with two decimals. A cell is empty if something in it is; a part in
brackets is left out instead, and so is a part with `{error:positive}` where the error is 0.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = re.compile(r"(^<!-- table (.*?) -->\n)(.*?)(^<!-- end table -->$)", flags=re.M | re.S)
CONDITION = re.compile(r" (where|whenever) (\w+)=")
NAMED = re.compile(r"\{([\w ]+)(?::([\w,]+))?\}")
FORMS: dict[str, Callable[[str], str]] = {
    "": str,
    ",": lambda cell: f"{int(cell):,}",
    "set": lambda cell: "{" + ",".join(cell.split()) + "}",
    "positive": str,
    "list": lambda cell: "[" + ",".join(cell.split()) + "]",
}
"""How a cell of the file is written. A number stands for so many decimals."""

NOTHING = "Not measured yet."
"""What a table without rows says."""
POSITIVE = "positive"
"""The form of a number that counts as missing where it is zero."""

Record = dict[str, str]


def tables_written(text: str, root: Path = ROOT) -> str:
    """Return a document with each marked table made from its file."""

    def written(found: re.Match[str]) -> str:
        return f"{found[1]}\n{table(found[2], root)}\n\n{found[4]}"

    return TABLE.sub(written, text)


def table(words: str, root: Path = ROOT) -> str:
    """Return the Markdown of the table that the words of a mark ask for."""
    source, *columns = words.split(" | ")
    place, *conditions = CONDITION.split(source)
    with open(root / place.strip(), newline="") as file:
        records = list(csv.DictReader(file))
    parts = conditions[::3], conditions[1::3], conditions[2::3]
    for kind, column, values in zip(*parts, strict=True):
        kept = [value.strip() for value in values.split(";")]
        missing = set(kept) - {record[column] for record in records}
        if missing and kind == "where":
            raise ValueError(f"{place} has no row with {column} = {sorted(missing)}")
        kept_records = [record for record in records if record[column] in kept]
        records = sorted(kept_records, key=lambda record: kept.index(record[column]))
    if not records:
        return NOTHING
    rows = [headings(columns, records), *cells(columns, records)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def headings(columns: Sequence[str], records: Sequence[Record]) -> list[str]:
    """Return the headings of a table, one for each value of a column that goes across."""
    found: list[str] = []
    for column in columns:
        heading = column.partition(": ")[0]
        across = heading.removeprefix("across ")
        found += [heading] if across == heading else values_of(across, records)
    return found


def cells(columns: Sequence[str], records: Sequence[Record]) -> list[list[str]]:
    """Return the rows of a table. Records that differ in what goes across alone are one row."""
    rows: dict[tuple[str, ...], dict[str, str]] = {}
    across = [column.removeprefix("across ") for column in columns if column.startswith("across ")]
    down = [column.partition(": ")[2] for column in columns if not column.startswith("across ")]
    if not across:
        return [[filled(template, record) for template in down] for record in records]
    heading, _, template = across[0].partition(": ")
    for record in records:
        row = rows.setdefault(tuple(filled(each, record) for each in down), {})
        row[filled(heading, record)] = filled(template, record)
    order = values_of(heading, records)
    return [[*first, *(row.get(value, "") for value in order)] for first, row in rows.items()]


def values_of(heading: str, records: Sequence[Record]) -> list[str]:
    """Return the headings that a template has for these records, each once."""
    return list(dict.fromkeys(filled(heading, record) for record in records))


def filled(template: str, record: Record) -> str:
    """Return a template with the cells of a record in it.

    >>> filled("{a:2}[ ± {b}]", {"a": "1.005", "b": ""})
    '1.00'
    """
    parts = re.split(r"\[(.*?)\](?!\()", template)
    kept = [
        part for number, part in enumerate(parts) if number % 2 == 0 or not _empty(part, record)
    ]
    whole = "".join(kept)
    return "" if _empty(whole, record) else NAMED.sub(lambda each: _cell(each, record), whole)


def _empty(template: str, record: Record) -> bool:
    found = [(record[each[1]], each[2]) for each in NAMED.finditer(template)]
    return any(not cell or (form == POSITIVE and float(cell) == 0) for cell, form in found)


def _cell(found: re.Match[str], record: Record) -> str:
    cell, form = record[found[1]], found[2] or ""
    if form.startswith("mean"):
        cell, form = cell.partition("±")[0], form.removeprefix("mean")
    return f"{float(cell):.{form}f}" if form.isdigit() else FORMS[form](cell)


def main(words: Sequence[str]) -> int:
    """Write the tables of all documents, or say which differ from their files."""
    differing = 0
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text()
        written = tables_written(text)
        if written != text:
            differing += 1
            print(path.relative_to(ROOT))
            if "--check" not in words:
                path.write_text(written)
    return int(differing > 0 and "--check" in words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
