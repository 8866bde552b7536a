"""The least number of exact heads for small sets of lags, from searches
(`research/bracket_search.py`).

A failed search proves nothing. A successful one yields a circuit, whose largest defect
is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sih.base.files import check_entries, read_json, reading
from sih.heads.mixing import progression
from sih.task import check_lags

TABLE = Path(__file__).with_name("brackets.json")
ENTRIES: dict[str, type | tuple[type, ...]] = {
    "lags": list,
    **dict.fromkeys(("unmixed", "closed", "lower"), int),
    **dict.fromkeys(("query", "both"), dict),
}
"""The columns of the table."""
EXACT = 1e-7
"""A circuit counts as exact if its defect is below this at every offset."""
LENGTH, STARTS = 64, 4
"""Length of the sequences in the searches, and the number of starts of each search."""


@dataclass(frozen=True)
class Bracket:
    """Known results on a set of lags: numbers of heads, and defects of the best circuit
    found with fewer.
    """

    lags: tuple[int, ...]
    unmixed: int
    closed: int
    """Heads of the closed form of `mixing.py`."""
    lower: int
    """Lower bound for circuits that read the query's side, by rank or because there are
    more than two lags."""
    query: dict[int, float]
    """The largest defect found, by number of heads, reading the query's side; empty if
    nothing is open."""
    both: dict[int, float]
    """The same, reading both sides, for this very set; empty if it was not searched."""

    @property
    def query_heads(self) -> int:
        """Return the fewest heads known to be exact, reading the query's side."""
        return min(
            [
                self.unmixed,
                self.closed,
                *(heads for heads, off in self.query.items() if off < EXACT),
            ]
        )

    @property
    def both_heads(self) -> int:
        """Return the fewest heads known to be exact, reading both sides."""
        return min([self.query_heads, *(heads for heads, off in self.both.items() if off < EXACT)])


def normal_form(lags: tuple[int, ...]) -> tuple[int, ...]:
    """Return lags shifted, divided and mirrored, so that sets with the same numbers of
    heads on the query's side become one.

    >>> normal_form((3, 9, 11))
    (1, 2, 5)
    """
    step, _ = progression(lags)
    shrunk = tuple((lag - lags[0]) // step + 1 for lag in lags)
    return min(shrunk, tuple(shrunk[-1] + 1 - lag for lag in reversed(shrunk)))


@cache
def kept_brackets() -> dict[tuple[int, ...], Bracket]:
    """Return the stored table, by set of lags in normal form."""
    return {bracket.lags: bracket for bracket in read_brackets(TABLE)}


def read_brackets(path: Path) -> list[Bracket]:
    """Return a table of brackets; raise a ValueError that names the file and the error
    if it is invalid.
    """
    with reading(path, "is no table of brackets; research/bracket_search.py writes one"):
        table = read_json(path)
        check_entries(table, {"brackets": list}, ("brackets",))
        return [_bracket(row) for row in table["brackets"]]


def _bracket(row: Any) -> Bracket:
    check_entries(row, ENTRIES, tuple(ENTRIES))
    counts = {
        name: {int(heads): float(off) for heads, off in row[name].items()}
        for name in ("query", "both")
    }
    found = Bracket(**{**row, **counts, "lags": check_lags(row["lags"])})
    if min(found.unmixed, found.closed, found.lower, *found.query, *found.both) < 1:
        raise ValueError(f"numbers of heads are 1 or more; got {row!r:.60}")
    return found
