"""Where the theorem ends: f free of P with a gap below 0, in fractions. A proof there must use that f is a column."""

from __future__ import annotations

from fractions import Fraction
from math import cos, pi

import pytest
from mathematics.oracles_lemmas import cycle_gap, free_gaps, stationary

import sih
from sih.claim.monte_carlo import PAPER_LAGS

pytestmark = pytest.mark.slow

Q = Fraction


def loop(width: int, height: int) -> list[int]:
    """a, b, a', b', ... where (a, b) goes clockwise round [0, width] x [0, height], one unit at a time."""
    corners = [(a, 0) for a in range(width, 0, -1)] + [(0, b) for b in range(height)]
    corners += [(a, height) for a in range(width)] + [(width, b) for b in range(height, 0, -1)]
    return [x for point in corners for x in point]


TEN = [10 + round(5 * cos(2 * pi * j / 10)) for j in range(10)]
FOURTEEN = [14, 14, 12, 11, 9, 8, 6, 6, 6, 8, 9, 11, 12, 14]
C134 = [
    0,
    100,
    6,
    6,
    100,
    3,
    19,
    100,
    2,
    33,
    100,
    0,
    57,
    100,
    0,
    100,
    57,
    0,
    100,
    33,
    0,
    100,
    19,
    0,
    100,
    11,
]
C124 = [
    100,
    100,
    0,
    57,
    100,
    0,
    33,
    100,
    0,
    19,
    100,
    0,
    11,
    100,
    0,
    6,
    100,
    6,
    3,
    100,
    19,
    2,
    100,
    33,
    0,
    100,
    57,
    0,
]


@pytest.mark.parametrize(
    ("lags", "rival", "f", "gap"),
    [
        ((1, 2, 3), 3, loop(120, 30), -0.00106),
        ((1, 3, 4), 4, C134, -0.2162),
        ((1, 2, 4), 4, C124, -0.2008),
        ((1, 3, 4), 3, loop(120, 30), -0.00105),
        ((1, 2, 9), 2, TEN, Q(-907639, 4640503000)),
        (PAPER_LAGS, 2, FOURTEEN, Q(-24911999086, 101022834441375)),
    ],
)
def test_on_a_cycle(lags: tuple[int, ...], rival: int, f: list[int], gap: float | Fraction) -> None:
    found = cycle_gap(f, lags, 1, rival)
    assert found < 0
    assert (
        found == gap if isinstance(gap, Fraction) else float(found) == pytest.approx(gap, rel=0.02)
    )
    assert sih.claim_status(lags)[1, rival] == "open"


def test_the_cycle_oracle_is_the_chains() -> None:
    """The mean along the cycle is the expectation over the stationary chain."""
    P = [[Q(j == (i + 1) % 10) for j in range(10)] for i in range(10)]
    gaps = free_gaps(P, [Q(x) for x in TEN], (1, 2, 9), 1)
    assert gaps[2] == cycle_gap(TEN, (1, 2, 9), 1, 2) == Q(-907639, 4640503000)
    assert gaps[9] == cycle_gap(TEN, (1, 2, 9), 1, 9)


def test_the_loop_must_go_this_way_and_be_fine() -> None:
    """The other way round the gap is positive, and so is that of the middle, which Lemma T covers."""
    f = loop(120, 30)
    assert cycle_gap(f[::-1], (1, 2, 3), 1, 3) > 0
    assert cycle_gap(f, (1, 2, 3), 1, 2) > 0
    assert cycle_gap(loop(40, 10), (1, 2, 3), 1, 3) > cycle_gap(f, (1, 2, 3), 1, 3)


@pytest.mark.parametrize(
    ("swap", "rare", "middle", "lags", "gap"),
    [
        ((2, 1, 0), (0, 2), Q(11, 20), (1, 2, 3, 7, 11, 15, 19), Q(-174617, 493210000000)),
        ((1, 0, 2), (0, 1), Q(1, 2), (1, 2, 4, 8, 12, 16, 20, 24, 28, 32), Q(-827, 342000000)),
    ],
)
def test_outside_the_class(
    swap: tuple[int, ...],
    rare: tuple[int, ...],
    middle: Fraction,
    lags: tuple[int, ...],
    gap: Fraction,
) -> None:
    """True lag 2, rival 1, f = (0, a, 1), P a swap of two states: alone against six, and nine against one alone.

    All companions are an odd number of swaps away and show one state, so the window has three values to sum over.
    """
    f, p = [Q(0), middle, Q(1)], Q(1, 1000)
    law = [p if x in rare else 1 - 2 * p for x in range(3)]
    own, others = ([lag for lag in lags if lag % 2 == side] for side in (0, 1))
    total = Q(0)
    for x in range(3):
        for z in range(3):
            window = f[x] + (len(own) - 1) * f[swap[x]] + f[z] + (len(others) - 1) * f[swap[z]]
            total += law[x] * law[z] * f[x] * (f[x] - f[z]) / window if f[x] else 0
    assert total == gap < 0
    assert all(
        (lag - side) // 2 % 2 == 1
        for side, c in ((2, own), (1, others))
        for lag in c
        if lag != side
    )
    assert sih.claim_status(lags)[2, 1] == "open"


def test_mixing_keeps_the_sign() -> None:
    """The swap with a little of every state mixed in is irreducible, has the same stationary law, and a gap < 0."""
    p, little = Q(1, 1000), Q(1, 10**7)
    law = [p, 1 - 2 * p, p]
    P = [
        [(1 - little) * (swapped == j) + little * law[j] for j in range(3)] for swapped in (2, 1, 0)
    ]
    assert stationary(P) == law
    assert free_gaps(P, [Q(0), Q(11, 20), Q(1)], (1, 2, 3, 7, 11, 15, 19), 2)[1] < 0
