r"""A lower bound on exact heads that may mix lags: the rank of the matrix that the
criterion prescribes.

All of it is about absolute positions. With relative ones a score has the product of
content and offset, and a single head is exact (`sih.circuits.relative`).

Let weights depend on the offset alone and reads on differences, so that
$F_o[k, k'] = f_o(k' - k)$ with $f_o(x) = \sum_h u_h(o)\,g_h(o + x)$
(`sih.heads.profiles`, query's side). $J F_o J = J$ means, on the differences x of two
lags,

$$f_o(x) = [x = 0] + a(o) + A_o(x), \qquad A_o(k' - k) = \alpha_o(k') - \alpha_o(k) \text{ for some } \alpha_o.$$

Take offsets O and numbers w(n) such that for every $o \in O$ all n with $w(n) \ne 0$
have n - o a difference of two lags, and $\sum_n w(n)\,t(n - o) = 0$ for t = 1 and every
A of that form. Then $\sum_h u_h(o) \sum_n w(n)\,g_h(n) = w(o)$: with H heads the matrix
of w(o), over all such w and all $o \in O$, has rank H at most, whatever the signs. Only
offsets whose differences are all differences of lags can matter. For an interval A is
linear, the w are second differences, and the matrix for K - 1 offsets in a row is
tridiag(-1, 2, -1), of determinant K: K - 1 heads are least. The same holds for every
set whose differences are as many and force A to be linear, such as {1, 2, 3, 5}.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import torch

Rows = list[list[Fraction]]
CLIQUES = 400
"""Number of sets of offsets tried: counted, not timed, so that the answer does not
depend on the machine."""


@dataclass(frozen=True)
class RankBound:
    """A lower bound on heads: offsets at which the criterion prescribes a matrix of
    this rank.
    """

    heads: int
    offsets: tuple[int, ...]


def rank_bound(lags: Sequence[int], enough: int) -> RankBound:
    """Return the best bound among the first `CLIQUES` sets of offsets, or one that
    reaches `enough`.

    >>> rank_bound((1, 2, 3, 5), enough=4)
    RankBound(heads=4, offsets=(0, 1, 2, 3))
    """
    step = math.gcd(*(lag - lags[0] for lag in lags)) or 1
    shrunk = tuple((lag - lags[0]) // step for lag in lags)
    shared = _shared(shrunk)
    best: tuple[int, ...] = (0,)
    most = 1
    for _, offsets in zip(
        range(CLIQUES),
        _cliques(dict.fromkeys(sorted(abs(a - b) for a in shrunk for b in shrunk))),
        strict=False,
    ):
        if most >= min(enough, len(offsets)):
            continue
        conditions, both = (
            torch.tensor(rows, dtype=torch.float64) for rows in _prescribed(shared, offsets)
        )
        rank = int(torch.linalg.matrix_rank(both)) - int(torch.linalg.matrix_rank(conditions))
        if rank > most:
            best, most = offsets, rank
    return RankBound(prescribed_rank(shrunk, best), tuple(step * o for o in best))


def prescribed_rank(lags: Sequence[int], offsets: Sequence[int]) -> int:
    """Return the rank of the matrix that the criterion prescribes at these offsets, in
    exact arithmetic.
    """
    conditions, both = _prescribed(_shared(lags), offsets)
    return len(_echelon(both)[1]) - len(_echelon(conditions)[1])


def _prescribed(shared: list[dict[int, Fraction]], offsets: Sequence[int]) -> tuple[Rows, Rows]:
    """Return the conditions on w, and the same with w(o) = 0 in addition: the rank is
    the difference of theirs.
    """
    reached = ({o + x for x in shared[0]} for o in offsets)
    indices = sorted(set.intersection(*reached))
    conditions = [[t[n - o] for n in indices] for o in offsets for t in shared]
    return conditions, conditions + [[Fraction(n == o) for n in indices] for o in offsets]


def _shared(lags: Sequence[int]) -> list[dict[int, Fraction]]:
    """Return a basis of the freedom that the criterion leaves at an offset: the
    constant and every A, by difference.
    """
    pairs: dict[int, tuple[int, int]] = {}
    equations = [[Fraction(i == 0) for i in range(len(lags))]]  # alpha is 0 at the first lag
    for a, first in enumerate(lags):
        for b, second in enumerate(lags):
            c, d = pairs.setdefault(second - first, (a, b))
            equations.append(
                [Fraction((i == b) - (i == a) - (i == d) + (i == c)) for i in range(len(lags))]
            )
    found = [
        {x: alpha[b] - alpha[a] for x, (a, b) in pairs.items()}
        for alpha in _null_space(equations, len(lags))
    ]
    return [dict.fromkeys(pairs, Fraction(1)), *found]


def _cliques(distances: dict[int, None]) -> Iterator[tuple[int, ...]]:
    """Return sets of offsets from 0 on with all differences among these, long runs of
    neighbours first.
    """
    stack: list[tuple[int, ...]] = [(0,)]
    while stack:
        offsets = stack.pop()
        yield offsets
        more = [
            o
            for o in distances
            if o > offsets[-1] and all(o - other in distances for other in offsets)
        ]
        stack += [(*offsets, o) for o in reversed(more)]


def _echelon(rows: Rows) -> tuple[Rows, list[int]]:
    """Return reduced rows, and the columns of their leading ones."""
    rows, leading = [row[:] for row in rows], list[int]()
    for column in range(len(rows[0]) if rows else 0):
        top = len(leading)
        pivot = next((r for r in range(top, len(rows)) if rows[r][column]), None)
        if pivot is None:
            continue
        rows[top], rows[pivot] = rows[pivot], rows[top]
        rows[top] = [value / rows[top][column] for value in rows[top]]
        for r, row in enumerate(rows):
            if r != top and row[column]:
                rows[r] = [
                    value - row[column] * lead for value, lead in zip(row, rows[top], strict=True)
                ]
        leading.append(column)
    return rows[: len(leading)], leading


def _null_space(rows: Rows, width: int) -> Rows:
    reduced, leading = _echelon(rows)
    found = []
    for free in (column for column in range(width) if column not in leading):
        vector = [Fraction(column == free) for column in range(width)]
        for row, column in zip(reduced, leading, strict=True):
            vector[column] = -row[free]
        found.append(vector)
    return found
