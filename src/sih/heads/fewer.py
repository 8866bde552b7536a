r"""Patterns with fewer heads than `least_heads` needs, which leave some offsets unused.

The transitions at these offsets are lost. Paper: Sec. 5.4, "Single-head transformers":
the same algorithm with worse sample complexity. With $\mu$ the largest density of a set
of integers without a distance in D, H heads use at most $H\mu$ of the offsets. Up to H
= K heads attain it: let A be such a set and a, b two lags. Then A + a and A + b do not
meet, for a - b is in D and so is no difference of two members of A.
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
    r"""Return an assignment of offsets to heads that mixes nothing.

    It leaves few offsets unused. Unused offsets have -1 in `colours`. `used` is the
    fraction of offsets that some head takes, and `most` a proved bound on it. If they
    are equal, the pattern is `optimal`. That is so for as many heads as lags, or as the
    largest clique has points, if the search finds the density $\mu$. It does for small
    sets. Otherwise the pattern is the best found. With enough heads it is the pattern
    of `least_heads`, with `time_limit` seconds.

    Args:
        lags: the task's lags, increasing.
        heads: number of second-layer heads.
        time_limit: seconds for `least_heads`.

    Returns:
        The pattern: `colours[o % period]` is the head of offset o.

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
    # Of equally full patterns take the shortest, then the one that uses the newest offsets.
    best = min(
        patterns, key=lambda p: (Fraction(p.count(-1), len(p)), len(p), [k < 0 for k in p], p)
    )
    # With fewer than the least number of heads some offset is unused. 1 is not a sharp bound then.
    return Pattern(full.lags, best, heads, min(Fraction(1), heads * mu))


def _densest(D: Sequence[int]) -> tuple[list[tuple[int, list[int]]], Fraction]:
    """Return ever denser sets without a distance in D, and a bound for all.

    Each set is on a circle.
    """
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
    """Return whether a proof was found that no set without a distance in D is denser.

    A set is built integer by integer. The state is which of the last max D integers are
    members. With density p/q a member earns q - p, any other integer -p. A denser set
    would earn without end. `value` is the most that any way to a state earns. If these
    values settle, no set earns more. If one exceeds p max D they do not settle, since
    max D integers without a member lead back to the empty state for that price.
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
    """Return disjoint translates of one set on a circle, one per head.

    There may be fewer than heads.
    """
    meet = {(a - b) % length for a in members for b in members}
    near: list[int] = []  # each is the next one disjoint from all before
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
    """Return the pattern with the heads numbered by first use, and -1 unchanged."""
    number = {-1: -1}
    return tuple(number.setdefault(k, len(number) - 1) for k in pattern)
