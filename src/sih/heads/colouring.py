"""Searches behind `least_heads`: colourings of the integers with forbidden distances.

No two integers of one colour may be at a distance in D. The graph G(Z, D) joins
integers at such distances. Every question about it is answered on a finite piece. A
*segment* 0 .. n-1 that cannot be coloured is a proof. A colouring of a *circle* of n
integers (distances modulo n), repeated, colours all integers.

A set of vertices is the bits of a Python integer, so a step of a search handles all
vertices at once. `adjacent[v]` is the set of v's neighbours. Every search here is
exhaustive and repeatable: it returns the same answer each time or raises
`OutOfBudgetError`.
"""

import math
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress


class OutOfBudgetError(Exception):
    """The end of a search that has no answer yet."""


class Budget:
    """A limit on the steps of a search, or on the time by `time.monotonic`."""

    def __init__(self, steps: int | float = math.inf, deadline: float = math.inf) -> None:
        self.steps, self.deadline, self.taken = steps, deadline, 0

    def spend(self) -> None:
        self.taken += 1
        if self.taken > self.steps or (self.taken % 64 == 1 and time.monotonic() > self.deadline):
            raise OutOfBudgetError


LONGEST = 2**14
"""Largest number of integers in a piece: its neighbours take the square of it in
bits."""


def segment(length: int, distances: Collection[int]) -> list[int]:
    """Return the neighbours of each of 0 .. length-1 in G(Z, distances)."""
    if length > LONGEST:
        raise OutOfBudgetError
    everything = (1 << length) - 1
    above = sum(1 << d for d in distances)
    return [
        above << v & everything | sum(1 << (v - d) for d in distances if d <= v)
        for v in range(length)
    ]


def circle(length: int, distances: Collection[int]) -> list[int] | None:
    """Return the neighbours of each integer on a circle.

    It is None if a distance leads back to its start.
    """
    if any(d % length == 0 for d in distances):
        return None
    if length > LONGEST:
        raise OutOfBudgetError
    steps = {d % length for d in distances} | {-d % length for d in distances}
    return [sum(1 << (v + s) % length for s in steps) for v in range(length)]


def largest_clique(distances: Collection[int], budget: Budget) -> tuple[int, ...]:
    """Return a largest set of integers, with least member 0, at distances in D.

    Each of them needs a colour of its own.
    """
    best: tuple[int, ...] = (0,)

    def grow(clique: tuple[int, ...], candidates: list[int]) -> None:
        nonlocal best
        budget.spend()
        if len(clique) > len(best):
            best = clique
        for n, v in enumerate(candidates):
            if len(clique) + len(candidates) - n <= len(best):
                return
            grow((*clique, v), [w for w in candidates[n + 1 :] if w - v in distances])

    with suppress(OutOfBudgetError):  # a smaller clique is still a clique
        grow((0,), sorted(distances))
    return best


def class_sizes(
    distances: Collection[int], length: int, budget: Budget, known: Sequence[int] = (0, 1)
) -> list[int]:
    """Return f[n], the most of n consecutive integers in one colour, by n.

    The list is shorter if the budget is spent. f[n] is f[n-1], or one more. It is one
    more if a set that contains both ends, 0 and n-1, is that large. The search for such
    a set adds members upwards. It gives up where even f of the remaining integers
    cannot reach the number.
    """
    above = sum(1 << d for d in distances)
    sizes = list(known)

    def fits(n: int, free: int, need: int) -> bool:
        budget.spend()
        while need:
            low = (free & -free).bit_length() - 1
            if free.bit_count() < need or sizes[n - low] <= need:  # the end n-1 is a member as well
                return False
            free &= free - 1
            if fits(n, free & ~(above << low), need - 1):
                return True
        return True

    with suppress(OutOfBudgetError):
        while len(sizes) <= length:
            n, end = len(sizes), 1 << (len(sizes) - 1)
            below = sum(1 << (n - 1 - d) for d in distances if d < n)
            both = not above & end and fits(n, (end - 1) & ~(1 | above | below), sizes[-1] - 1)
            sizes.append(sizes[-1] + both)
    return sizes


def largest_on_circle(
    length: int, distances: Collection[int], sizes: Sequence[int], budget: Budget
) -> list[int]:
    """Return the largest set of integers on a circle with no two at a distance in D.

    Of several it is the lexicographically first. `sizes` is
    `class_sizes(distances, ...)`, an upper bound for an arc.
    """
    adjacent = circle(length, distances)
    if adjacent is None:
        return []
    best: list[int] = []

    def grow(members: list[int], free: int) -> None:
        nonlocal best
        budget.spend()
        if len(members) > len(best):
            best = members
        while free:
            low = (free & -free).bit_length() - 1
            arc = length - low
            room = min(free.bit_count(), sizes[arc] if arc < len(sizes) else arc)
            if len(members) + room <= len(best):
                return
            free &= free - 1
            grow([*members, low], free & ~adjacent[low])

    grow([0], (1 << length) - 2 & ~adjacent[0])
    return best


def colour(
    adjacent: Sequence[int],
    colours: int,
    budget: Budget,
    *,
    fixed: Sequence[tuple[int, int]] = (),
    capacity: int | None = None,
) -> list[int] | None:
    """Return a proper colouring with at most this many colours, or None.

    `fixed` pairs of (vertex, colour) are kept. Their colours must be 0 .. u-1 for some
    u. Unused colours beyond are interchangeable, so only the first of them is tried. No
    colour is used more than `capacity` times.
    """
    size = len(adjacent)
    search = _Backtracking(adjacent, budget)
    free = (1 << size) - 1
    allowed, room = [free] * colours, [size if capacity is None else capacity] * colours
    for v, k in fixed:
        if k >= colours or not allowed[k] >> v & 1:
            return None
        free = search.give(v, k, free, allowed, room)
    used = max((k + 1 for _, k in fixed), default=0)
    return search.answer if search.extend(free, allowed, room, used) else None


class _Backtracking:
    """A search for a colouring, with the tightest vertex first.

    `free` are the vertices without a colour, and `allowed[k]` those that may have
    colour k. `room[k]` is how many more may have it.
    """

    def __init__(self, adjacent: Sequence[int], budget: Budget) -> None:
        self.adjacent, self.budget = adjacent, budget
        self.answer = [-1] * len(adjacent)

    def give(self, v: int, k: int, free: int, allowed: list[int], room: list[int]) -> int:
        """Give vertex v the colour k, and return the vertices that are still free."""
        self.answer[v] = k
        room[k] -= 1
        allowed[k] = allowed[k] & ~self.adjacent[v] if room[k] else 0
        return free & ~(1 << v)

    def extend(self, free: int, allowed: list[int], room: list[int], used: int) -> bool:
        """Return whether the free vertices could be coloured.

        The colours are those below `used`, and new ones.
        """
        self.budget.spend()
        settled = self._give_forced(free, allowed, room, used)
        if settled is None:
            return False
        free, used = settled
        if not free:
            return True
        choices = allowed[: used + 1]
        v = _tightest(free, choices, self.adjacent)
        for k, mask in enumerate(choices):
            if mask >> v & 1:
                next_allowed, next_room = allowed.copy(), room.copy()
                left = self.give(v, k, free, next_allowed, next_room)
                if self.extend(left, next_allowed, next_room, max(used, k + 1)):
                    return True
        return False

    def _give_forced(
        self, free: int, allowed: list[int], room: list[int], used: int
    ) -> tuple[int, int] | None:
        """Colour vertices with one choice as long as there are any.

        Returns None if a vertex has no choice left.
        """
        while True:
            choices = allowed[: used + 1]
            one = two = 0  # vertices with at least one, at least two colours to choose from
            for mask in choices:
                two |= one & mask
                one |= mask
            if free & ~one:
                return None
            forced = free & ~two
            if not forced:
                return free, used
            v = (forced & -forced).bit_length() - 1
            k = next(k for k, mask in enumerate(choices) if mask >> v & 1)
            used = max(used, k + 1)
            free = self.give(v, k, free, allowed, room)


def colour_circle(
    length: int, distances: Collection[int], colours: int, sizes: Sequence[int], budget: Budget
) -> tuple[int, ...] | None:
    """Return a colouring of a circle, or None.

    A circle too long for this many of its largest classes is not searched.
    """
    adjacent = circle(length, distances)
    if (
        adjacent is None
        or colours * len(largest_on_circle(length, distances, sizes, budget)) < length
    ):
        return None
    found = colour(adjacent, colours, budget)
    return None if found is None else in_order(found)


def _tightest(free: int, choices: Sequence[int], adjacent: Sequence[int]) -> int:
    """Return the free vertex with the fewest choices.

    Of several it is the one with most free neighbours, then the first.
    """
    at_least = [free]  # at_least[j]: free vertices with j choices or more
    for mask in choices:
        at_least.append(0)
        for j in range(len(at_least) - 1, 0, -1):
            at_least[j] |= at_least[j - 1] & mask
    fewest = next((free & ~vertices for vertices in at_least if free & ~vertices), free)
    return max(members(fewest), key=lambda v: ((adjacent[v] & free).bit_count(), -v))


def first_colouring(
    adjacent: Sequence[int], colours: int, budget: Budget, capacity: int | None = None
) -> tuple[int, ...] | None:
    """Return the lexicographically first proper colouring, or None if there is none.

    It has at most this many colours.
    """
    found = colour(adjacent, colours, budget, capacity=capacity)
    if found is None:
        return None
    answer = in_order(found)
    for v in range(len(adjacent)):
        prefix = answer[:v]
        for k in range(answer[v]):
            better = colour(
                adjacent, colours, budget, fixed=[*enumerate(prefix), (v, k)], capacity=capacity
            )
            if better is not None:
                answer = in_order(better)
                break
    return answer


def cyclic_colouring(
    distances: Collection[int], colours: int, shift: int, budget: Budget
) -> tuple[int, ...] | None:
    """Return a colouring in which `shift` more adds 1 to the colour, or None.

    Colours are modulo `colours`. Its period is shift x colours, and all its colours are
    equally dense. Only the first `shift` integers are free to choose, so the search is
    quick where a general one is not.
    """
    # Integers a = r and b = q*shift + t, at a distance in D, differ in colour iff x_r != x_t + q (modulo colours).
    banned = [
        [0] * shift for _ in range(shift)
    ]  # banned[r][t]: the values of x_t - x_r that are excluded
    for r in range(shift):
        for d in distances:
            q, t = divmod(r + d, shift)
            if t == r and q % colours == 0:
                return None
            banned[r][t] |= 1 << -q % colours
            banned[t][r] |= 1 << q % colours
    everything = (1 << colours) - 1
    x = [0] * shift

    def extend(left: list[int], domain: list[int]) -> bool:
        budget.spend()
        if not left:
            return True
        r = min(left, key=lambda r: domain[r].bit_count())
        rest = [t for t in left if t != r]
        for k in members(domain[r]):
            narrowed = domain.copy()
            for t in rest:
                narrowed[t] &= ~(banned[r][t] << k | banned[r][t] >> colours - k)
            if all(narrowed[t] for t in rest):
                x[r] = k
                if extend(rest, narrowed):
                    return True
        return False

    if not extend(list(range(shift)), [1] + [everything] * (shift - 1)):
        return None
    return in_order([(x[o % shift] + o // shift) % colours for o in range(shift * colours)])


def in_order(colouring: Sequence[int]) -> tuple[int, ...]:
    """Return the same classes with the colours numbered by first use."""
    number: dict[int, int] = {}
    return tuple(number.setdefault(k, len(number)) for k in colouring)


def members(vertices: int) -> Iterator[int]:
    """Yield the vertices of a set, smallest first."""
    while vertices:
        yield (vertices & -vertices).bit_length() - 1
        vertices &= vertices - 1
