"""Slow, obvious answers about heads and offsets, straight from the definition of mixing; shares no code with sih."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

SMALL = [lags for k in range(1, 6) for lags in itertools.combinations(range(1, 6), k)]
"""Every set of lags within 1 to 5."""


def mixes(lags: Sequence[int], pattern: Sequence[int], length: int = 120) -> bool:
    """Store every (offset, lag) of every head at its index; does any index of a head get two?"""
    stored = set()
    for offset in range(length):
        head = pattern[offset % len(pattern)]
        for lag in lags:
            if head >= 0 and (head, offset + lag) in stored:
                return True
            stored.add((head, offset + lag))
    return False


def some_assignment(lags: Sequence[int], length: int, heads: int) -> tuple[int, ...] | None:
    """The first of all assignments of offsets 0 .. length-1 (not repeated) to heads that does not mix."""
    partial: list[tuple[int, ...]] = [()]
    while partial:
        start = partial.pop()
        if len(start) == length:
            return start
        for head in reversed(range(heads)):
            taken = {o + k for o, h in enumerate(start) if h == head for k in lags}
            if not taken & {len(start) + k for k in lags}:
                partial.append((*start, head))
    return None


def patterns(
    lags: Sequence[int], period: int, heads: int, idle: bool = False
) -> list[tuple[int, ...]]:
    """Every pattern of that period that does not mix, in lexicographical order; with -1 for no head if `idle`."""
    values = range(-1 if idle else 0, heads)
    length = 2 * (period + max(lags))
    return [p for p in itertools.product(values, repeat=period) if not mixes(lags, p, length)]
