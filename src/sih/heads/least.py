r"""The least number of second-layer heads for any set of lags, with a proof.

At query i a head of the second layer attends to positions i - o for the offsets o it
takes. The normalised probability of lag k at i - o goes to stream index i - o - k. Two
go to one index, and mix, exactly when $o + k = o' + k'$. So the offsets of one head
must not differ by a difference of two lags:

$$D = \{\,|a - b| : a, b \in \mathcal K,\ a \ne b\,\}, \qquad c(o) \ne c(o') \text{ whenever } |o - o'| \in D.$$

The least number of heads is the chromatic number of the graph on the integers with
distances D. All of this is about absolute positions. With relative ones one head mixes
nothing, for any lags (`sih.circuits.relative`). Paper: Sec. 5.4 and the appendix on any
set of lags, which leave it open between the number of lags and max - min + 1.
"""

import functools
import itertools
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from sih.base.errors import FieldError, check_number
from sih.base.showing import Drawn
from sih.heads.colouring import (
    Budget,
    OutOfBudgetError,
    circle,
    class_sizes,
    colour,
    colour_circle,
    cyclic_colouring,
    first_colouring,
    largest_clique,
    segment,
)
from sih.task import check_lags

QUICK = 20_000
"""Steps of each quick search. They are counted, not timed, so that the answer does not
depend on the machine."""
TIDY = 100_000
"""Steps for a shorter period, and for the preferred pattern of that period, once the
number of heads is known."""


@dataclass(frozen=True)
class Pattern(Drawn):
    """A periodic assignment of offsets to heads.

    Offset o has the head `colours[o % period]`. It is -1 if no head takes the offset.

    >>> Pattern((1, 3), colours=(0, 0, 1, 1), heads=2, most=Fraction(1)).offsets(1, below=8)
    (2, 3, 6, 7)
    """

    drawing = "sih.results.plots.heads:draw_pattern"

    lags: tuple[int, ...]
    colours: tuple[int, ...]
    heads: int
    most: Fraction
    """A proved upper bound on the fraction of offsets that this many heads can use."""

    def _facts(self) -> Mapping[str, Any]:
        used = {} if self.used == 1 else {"used": str(self.used)}
        return {"lags": self.lags, "heads": self.heads, "colours": self.colours, **used}

    @property
    def period(self) -> int:
        return len(self.colours)

    @property
    def used(self) -> Fraction:
        """Return the fraction of offsets (past transitions) that some head takes."""
        return 1 - self.density(-1)

    @property
    def optimal(self) -> bool:
        return self.used == self.most

    def density(self, head: int) -> Fraction:
        """Return the fraction of offsets that this head takes.

        For -1 it is the fraction that no head takes.
        """
        return Fraction(self.colours.count(head), self.period)

    def offsets(self, head: int, below: int) -> tuple[int, ...]:
        return tuple(o for o in range(below) if self.colours[o % self.period] == head)


@dataclass(frozen=True)
class LowerBoundProof:
    """A proof that finitely many integers need `heads` colours.

    `verify_lower_bound` checks it by separate code. There are three kinds:

    - "clique": the points are all at distances in D from one another, so each needs its
      own colour.
    - "count": one colour takes at most `largest` of the points, and (heads - 1) x
      largest is less than their number.
    - "exhaustion": trying every colouring of the points with heads - 1 colours fails.
    """

    kind: Literal["clique", "count", "exhaustion"]
    heads: int
    points: tuple[int, ...]
    largest: int | None = None


@dataclass(frozen=True)
class LeastHeads(Pattern):
    """The answer of `least_heads`: a pattern, and a proof of a lower bound.

    The pattern has `upper` heads, and at least `lower` are needed. `heads` is `upper`.
    """

    certificate: LowerBoundProof
    time_limit: float
    """Seconds the search was allowed, which explains an `exact` of False."""
    preferred: bool
    """Whether the colours are known to be the first in order of preference, not just
    the best found."""

    def _facts(self) -> Mapping[str, Any]:
        known = {"exact": True} if self.exact else {"lower": self.lower, "upper": self.upper}
        return {**super()._facts(), **known, "proof": self.certificate.kind}

    @property
    def lower(self) -> int:
        return self.certificate.heads

    @property
    def upper(self) -> int:
        return self.heads

    @property
    def exact(self) -> bool:
        return self.lower == self.upper


def heads_needed(lags: Sequence[int]) -> int:
    """Return the second-layer heads a circuit needs to use every past transition.

    Two lags have a circuit with a single head (`target="two-lags"`). All other sets
    need `least_heads`.

    >>> heads_needed((1, 3)), heads_needed((1, 2, 3))
    (1, 3)
    """
    return 1 if len(lags) == 2 else least_heads(lags).heads


def distances(lags: Sequence[int]) -> tuple[int, ...]:
    """Return D, the differences of two lags, increasing."""
    return tuple(sorted({b - a for a, b in itertools.combinations(check_lags(lags), 2)}))


def least_heads(lags: Sequence[int], *, time_limit: int | float = 10.0) -> LeastHeads:
    """Return the least number of second-layer heads, with a pattern and a proof.

    They lose and mix nothing. Of several patterns the preferred one has the shortest
    period. The next criteria are equally many offsets for each head, if possible, and
    then lexicographic order.

    The result is the same on every machine, unless `time_limit` seconds run out. Then
    it is a bracket: `exact` is False, the pattern needs `upper` heads, and the proof
    shows that fewer than `lower` do not suffice.

    Args:
        lags: the task's lags, increasing.
        time_limit: seconds for the search.

    Returns:
        The answer: `heads`, `lower`, `upper`, a pattern and a proof.

    >>> answer = least_heads((1, 3))
    >>> answer.heads, answer.colours, answer.certificate.kind
    (2, (0, 0, 1, 1), 'clique')
    """
    lags = check_lags(lags)
    check_number("time_limit", time_limit, 0, wanted="a positive number of seconds")
    if time_limit == 0:
        raise FieldError("time_limit", "time_limit is a positive number of seconds; got 0")
    colours, preferred, certificate = _solve(distances(lags), float(time_limit))
    return LeastHeads(
        lags, colours, max(colours) + 1, Fraction(1), certificate, float(time_limit), preferred
    )


@functools.lru_cache(maxsize=1024)  # shifted or mirrored sets of lags have the same differences
def _solve(D: tuple[int, ...], time_limit: float) -> tuple[tuple[int, ...], bool, LowerBoundProof]:
    deadline = time.monotonic() + time_limit
    scale = math.gcd(*D) or 1
    search = _Search(tuple(d // scale for d in D), deadline)
    search.close_the_gap()
    certificate = replace(search.proof, points=tuple(scale * p for p in search.proof.points))
    # The graph of D is `scale` copies of the one searched, the integers of one residue modulo `scale` each.
    found = tuple(search.colours[o // scale] for o in range(scale * len(search.colours)))
    return *_preferred(D, found, deadline), certificate


class _Search:
    """A bracket of the chromatic number of G(Z, D), with gcd of D 1.

    `proof` bounds it from below, `colours` (a period) from above.
    """

    def __init__(self, D: tuple[int, ...], deadline: float) -> None:
        self.D = D
        self.deadline = deadline
        self.span = max(D, default=0)
        # A distance that a modulus does not divide never joins equal residues. So every modulus above
        # the span works.
        self.colours = tuple(range(next(m for m in itertools.count(1) if all(d % m for d in D))))
        self.clique = largest_clique(set(D), Budget(QUICK))
        self.proof = LowerBoundProof("clique", len(self.clique), self.clique)
        self.sizes = [0, 1]

    @property
    def lower(self) -> int:
        return self.proof.heads

    @property
    def upper(self) -> int:
        return max(self.colours) + 1

    def budget(self, steps: int | float) -> Budget:
        if time.monotonic() > self.deadline:
            raise OutOfBudgetError
        return Budget(steps, self.deadline)

    def close_the_gap(self) -> None:
        """Raise the proof and lower the colouring until they meet, or until time is up.

        A number of colours either fails on some segment or succeeds on some circle.
        Both are tried with ever more steps, on ever longer segments and circles.
        """
        with suppress(OutOfBudgetError):
            for patience in itertools.count():
                steps = 500 * 4**patience
                self._count(20 * steps)
                self._cyclic(steps, longest=12 + 4 * patience)
                self._refute(self.lower, steps, length=self.span * (2 + patience))
                self._circles(self.upper - 1, steps, longest=self.span * (3 + patience))
                if self.lower == self.upper:
                    return

    def _count(self, steps: int) -> None:
        """Try a proof by counting.

        A class takes at most sizes[n] of n integers, so they need n / sizes[n] colours.
        """
        self.sizes = class_sizes(self.D, 3 * self.span + 1, self.budget(steps), self.sizes)
        bounds = [-(-n // self.sizes[n]) for n in range(1, len(self.sizes))]
        if max(bounds) > self.lower:
            n = bounds.index(max(bounds)) + 1
            self.proof = LowerBoundProof("count", max(bounds), tuple(range(n)), self.sizes[n])

    def _cyclic(self, steps: int, longest: int) -> None:
        """Try to colour with fewer colours, the fewest first, by patterns that add 1
        per period.
        """
        for c, shift in itertools.product(range(self.lower, self.upper), range(1, longest + 1)):
            budget = self.budget(steps)
            try:
                found = cyclic_colouring(self.D, c, shift, budget)
            except OutOfBudgetError:
                continue
            if found is not None:
                self.colours = found
                return

    def _refute(self, c: int, steps: int, length: int) -> None:
        """Try to show that c colours fail on a segment, then on the shortest such
        segment.

        The latter has the same number of steps.
        """
        if c >= self.upper:
            return
        fails, taken = self._fails(c, length, steps)
        if not fails:
            return
        self.proof = LowerBoundProof("exhaustion", c + 1, tuple(range(length)))
        shortest = self.clique[-1] + 1
        while shortest < length:
            middle = (shortest + length) // 2
            if self._fails(c, middle, 2 * taken + 100)[0]:
                length = middle
                self.proof = LowerBoundProof("exhaustion", c + 1, tuple(range(length)))
            else:
                shortest = middle + 1

    def _fails(self, c: int, length: int, steps: int) -> tuple[bool, int]:
        """Return whether this many steps show that c colours fail on a segment, and the
        steps used.
        """
        shift = (length - self.clique[-1]) // 2  # in the middle, the clique constrains both sides
        fixed = [(v + shift, k) for k, v in enumerate(self.clique)]
        budget = self.budget(steps)
        try:
            return colour(segment(length, self.D), c, budget, fixed=fixed) is None, budget.taken
        except OutOfBudgetError:
            return False, budget.taken

    def _circles(self, c: int, steps: int, longest: int) -> None:
        """Try to colour a circle of at most this length with c colours."""
        for length in range(c + 1, longest + 1 if c >= self.lower else 0):
            budget = self.budget(steps // 20)
            try:
                found = colour_circle(length, self.D, c, self.sizes, budget)
            except OutOfBudgetError:
                continue
            if found is not None:
                self.colours = found
                return


def _preferred(
    D: tuple[int, ...], found: tuple[int, ...], deadline: float
) -> tuple[tuple[int, ...], bool]:
    """Return the first pattern in order of preference, with as few colours as `found`.

    The second result is whether it is certain to be the first.
    """
    c = max(found) + 1
    sizes = class_sizes(D, len(found), Budget(QUICK, deadline))
    sure = True
    best = found
    tidy = Budget(TIDY, deadline)
    for length in range(c, len(found) + 1):
        if tidy.taken >= TIDY or time.monotonic() > deadline:
            return best, False
        if any(d % length == 0 for d in D):
            continue
        budget = Budget(TIDY // 10, deadline)
        try:
            shorter = colour_circle(length, D, c, sizes, budget)
        except OutOfBudgetError:
            sure = False
            continue
        finally:
            tidy.taken += budget.taken
        if shorter is not None:
            best = shorter
            break
    try:
        adjacent, equal = circle(len(best), D), None
        assert adjacent is not None
        if len(best) % c == 0:
            equal = first_colouring(adjacent, c, Budget(TIDY, deadline), capacity=len(best) // c)
        return equal or first_colouring(adjacent, c, Budget(TIDY, deadline)) or best, sure
    except OutOfBudgetError:
        return best, False
