"""The least number of exact heads for small sets of lags, as searches left it: `sih heads --table` makes the table.

A search that fails proves nothing; what it found is a circuit whose largest residual is written down.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sih.construction.heads.mixing import progression
from sih.files import read_json

TABLE = Path(__file__).with_name("brackets.json")
EXACT = 1e-7
"""A circuit whose residual is below this at every offset counts as exact."""


@dataclass(frozen=True)
class Bracket:
    """Holds what is known of a set of lags: numbers of heads, and residuals of the best circuit found with fewer."""

    lags: tuple[int, ...]
    unmixed: int
    closed: int
    """Heads of the closed form of `mixing.py`."""
    lower: int
    """Heads that any circuit needs which reads the query's side, by rank or because it has more than two lags."""
    query: dict[int, float]
    """The largest residual found, by number of heads, reading the query's side; empty where nothing is left open."""
    both: dict[int, float]
    """The same, reading both sides, of this very set; empty where it was not searched."""

    @property
    def query_heads(self) -> int:
        """Count the fewest heads known to be exact, reading the query's side."""
        return min([self.unmixed, self.closed, *(heads for heads, off in self.query.items() if off < EXACT)])

    @property
    def both_heads(self) -> int:
        """Count the fewest heads known to be exact, reading both sides."""
        return min([self.query_heads, *(heads for heads, off in self.both.items() if off < EXACT)])


def normal_form(lags: tuple[int, ...]) -> tuple[int, ...]:
    """Move, shrink and mirror lags so that sets with the same numbers of heads on the query's side become one.

    >>> normal_form((3, 9, 11))
    (1, 2, 5)
    """
    step, _ = progression(lags)
    shrunk = tuple((lag - lags[0]) // step + 1 for lag in lags)
    return min(shrunk, tuple(shrunk[-1] + 1 - lag for lag in reversed(shrunk)))


@cache
def kept_brackets() -> dict[tuple[int, ...], Bracket]:
    """Read the kept table, by set of lags in normal form."""
    return {bracket.lags: bracket for bracket in read_brackets(TABLE)}


def read_brackets(path: Path) -> list[Bracket]:
    """Read a table that `extend` wrote."""
    found = []
    for row in read_json(path)["brackets"]:
        counts = {name: {int(heads): off for heads, off in row[name].items()} for name in ("query", "both")}
        found.append(Bracket(**{**row, **counts, "lags": tuple(row["lags"])}))
    return found
