"""Least numbers of second-layer heads for all small lag sets: beyond the paper, which
has bounds (Sec. 5.4).
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass

from sih.heads import least_heads
from sih.results.experiment import Experiment


@dataclass(frozen=True)
class HeadCountsConfig:
    largest: int = 12
    """All non-empty sets of lags up to this one."""
    time_limit: float = 10.0


@dataclass(frozen=True)
class HeadCount:
    """The number of lag sets with given numbers of lags and of heads, and a given span
    (max - min + 1).
    """

    lags: int
    span: int
    heads: int
    sets: int


@dataclass(frozen=True)
class HeadCounts:
    """Numbers of lag sets by least number of heads, for all sets up to a lag."""

    largest: int
    counts: tuple[HeadCount, ...]
    unsettled: tuple[tuple[int, ...], ...]
    """Sets for which time ran out; they are counted at the number of heads that is
    known to suffice."""

    @property
    def sets(self) -> int:
        """Return the number of sets in all."""
        return sum(count.sets for count in self.counts)


def compute(config: HeadCountsConfig, store: object) -> HeadCounts:
    """Return the least number of heads of every non-empty set of lags up to
    `config.largest`.
    """
    if config.largest < 1:
        raise ValueError(f"largest is the largest lag, at least 1; got {config.largest}")
    counts: Counter[tuple[int, int, int]] = Counter()
    unsettled = []
    for number in range(1, config.largest + 1):
        for lags in itertools.combinations(range(1, config.largest + 1), number):
            answer = least_heads(lags, time_limit=config.time_limit)
            counts[number, lags[-1] - lags[0] + 1, answer.heads] += 1
            if not answer.exact:
                unsettled.append(lags)
    found = tuple(HeadCount(*key, sets) for key, sets in sorted(counts.items()))
    return HeadCounts(config.largest, found, tuple(unsettled))


EXPERIMENT = Experiment("heads", HeadCountsConfig(), HeadCounts, compute)
