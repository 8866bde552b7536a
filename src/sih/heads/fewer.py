r"""Patterns with fewer heads than `least_heads` asks for: some offsets, and their transitions, go unused.

Paper: Sec. 5.4, "Single-head transformers": the same algorithm with worse sample complexity. With $\mu$ the largest
density of a set of integers without a distance in D, H heads use at most $H\mu$ of the offsets. Up to H = K heads
attain it: let A be such a set and a, b two lags; then A + a and A + b do not meet, for a - b is in D and so is no
difference of two members of A.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from sih.base.errors import FieldError
from sih.heads.colouring import (
    Budget,
    OutOfBudgetError,
    class_sizes,
    largest_clique,
    largest_on_circle,
)
from sih.heads.least import QUICK, Pattern, distances, least_heads


def head_offsets(lags: Sequence[int], heads: int, *, time_limit: int | float = 10.0) -> Pattern:
    """Assign offsets to this many heads so that nothing mixes and few offsets go unused (-1 in `colours`).

    `used` is the fraction of offsets that some head takes and `most` a proved bound on it; where they meet, the
    pattern is `optimal`. That is so for as many heads as lags, or as the largest clique has points, whenever the
    search settles the density mu, as it does for small sets; beyond, the pattern is the best found. With enough
    heads it is the pattern of `least_heads`, which has `time_limit` seconds.

    >>> head_offsets((1, 2, 3), heads=1).colours
    (0, -1, -1)
    """
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        raise FieldError(
            "heads", f"heads is a number of second-layer heads, at least 1; got {heads!r}"
        )
    full = least_heads(lags, time_limit=time_limit)
    if heads >= full.heads:
        return full
    D = distances(full.lags)
    sets, mu = _densest(D)
    patterns = [_largest_classes(full.colours, heads)]
    patterns += [_translates(length, members, D, heads) for length, members in sets]
    # Of equally full patterns the shortest, then the one that uses the newest offsets.
    best = min(
        patterns, key=lambda p: (Fraction(p.count(-1), len(p)), len(p), [k < 0 for k in p], p)
    )
    # Short of the least number of heads, some offset goes unused, but how few can is not known: 1 is no sharp bound.
    return Pattern(full.lags, best, heads, min(Fraction(1), heads * mu))


def _densest(D: Sequence[int]) -> tuple[list[tuple[int, list[int]]], Fraction]:
    """Find ever denser sets without a distance in D, each on a circle, and a bound on the density of any such set."""
    longest = 3 * D[-1] + 1
    sizes = class_sizes(D, longest, Budget(10 * QUICK))
    bound = min(Fraction(sizes[n], n) for n in range(1, len(sizes)))
    best, sets = Fraction(0), []
    for length in range(1, longest + 1):
        try:
            members = largest_on_circle(length, D, sizes, Budget(QUICK // 10))
        except OutOfBudgetError:
            continue
        if Fraction(len(members), length) > best:
            best = Fraction(len(members), length)
            sets.append((length, members))
        if best == bound:
            break
    return sets, best if best < bound and none_denser(D, best, Budget(10 * QUICK)) else bound


def none_denser(D: Collection[int], density: Fraction, budget: Budget) -> bool:
    """Tell whether it is proved that no set of integers without a distance in D is denser than that.

    Build a set integer by integer: the state is which of the last max D integers are members, and with density p/q a
    member earns q - p, any other integer -p. A denser set would earn without end. Nothing is earned beyond `value`,
    the most that any way to a state earns, if these values settle; and if one passes p max D they do not settle,
    since max D integers without a member lead back to the empty state for that price.
    """
    p, q, window = density.numerator, density.denominator, max(D)
    everything = (1 << window) - 1
    blocked = sum(1 << (d - 1) for d in D)  # bit j: the integer j + 1 before
    value = {0: 0}
    waiting = deque([0])
    try:
        while waiting:
            budget.spend()
            state = waiting.popleft()
            moves = [(state << 1 & everything, value[state] - p)]
            if not state & blocked:
                moves.append(((state << 1 | 1) & everything, value[state] + q - p))
            for following, earned in moves:
                if earned > value.get(following, earned - 1):
                    if earned > p * window:
                        return False
                    value[following] = earned
                    waiting.append(following)
    except OutOfBudgetError:
        return False
    return True


def _largest_classes(colours: tuple[int, ...], heads: int) -> tuple[int, ...]:
    kept = sorted(set(colours), key=lambda k: (-colours.count(k), k))[:heads]
    return _numbered(k if k in kept else -1 for k in colours)


def _translates(
    length: int, members: Sequence[int], D: Collection[int], heads: int
) -> tuple[int, ...]:
    """Give each head a translate of one set on a circle, disjoint from the others, as far as they are found."""
    meet = {(a - b) % length for a in members for b in members}
    near: list[int] = []  # each the next that meets none before it
    for shift in range(length):
        if all((shift - other) % length not in meet for other in near):
            near.append(shift)
    far = largest_clique(set(D), Budget(QUICK))  # no distance in D is in `meet`
    pattern = [-1] * length
    for head, shift in enumerate((near if len(near) >= min(heads, len(far)) else far)[:heads]):
        for a in members:
            pattern[(a + shift) % length] = head
    return _numbered(pattern)


def _numbered(pattern: Iterable[int]) -> tuple[int, ...]:
    """Number the heads by first use, -1 left alone."""
    number = {-1: -1}
    return tuple(number.setdefault(k, len(number) - 1) for k in pattern)
