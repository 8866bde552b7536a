"""The lemmas of docs/proofs in Fractions, logarithms between two of them. Shares no code with `sih`."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

Q = Fraction
NOTHING = Q(0)
UNIT = 2**200
"""Logarithms are known to some of these units."""


@dataclass(frozen=True)
class Between:
    """A number known to lie between two fractions."""

    low: Fraction
    high: Fraction

    def __add__(self, other: Between | Fraction) -> Between:
        low, high = (other.low, other.high) if isinstance(other, Between) else (other, other)
        return Between(self.low + low, self.high + high)

    def times(self, factor: Fraction) -> Between:
        return Between(*sorted((self.low * factor, self.high * factor)))


def log(x: Fraction) -> Between:
    """The logarithm by the series of 2 artanh((x-1)/(x+1)), with its remainder, after halving or doubling x."""
    halvings = 0
    while x > Q(4, 3):
        x, halvings = x / 2, halvings + 1
    while x < Q(2, 3):
        x, halvings = x * 2, halvings - 1
    return _series(x) + _series(Q(2)).times(Q(halvings))


@functools.cache
def _series(x: Fraction) -> Between:
    """For x from 2/3 to 2, in units: the argument is at most 1/3, so that 70 terms leave less than one unit.

    Each product is rounded down by less than a unit, and so is each of its terms: 1000 units are more than enough.
    """
    u = (x - 1) / (x + 1) * UNIT // 1
    square = u * u // UNIT
    total, power = 0, u
    for j in range(70):
        total += 2 * power // (2 * j + 1)
        power = power * square // UNIT
    return Between(Q(total - 1000, UNIT), Q(total + 1000, UNIT))


def h(y: Fraction, t: Fraction) -> Fraction:
    return t - 3 * y / 2 if t > 2 * y else (t - y) ** 2 / (2 * y) if y else Q(0)


def g(z: Fraction, t: Fraction) -> Between:
    if z == 0:
        return Between(t, t)
    if t >= z / 2:
        return log(t / z).times(-z) + (t - z)
    return log(Q(2)).times(z) + (-z / 2 + (z / 2 - t) + 2 / z * (z / 2 - t) ** 2)


def weighted_g(z: Fraction, t: Fraction, m: Fraction) -> Between:
    if t <= z:
        return g(z, t).times(1 - m / z if z else Q(1))
    return log(t / z).times(-(m + z)) + (t - z - m * z / t + m) if z else Between(t, t)


def lemma_d_slack(
    y: Fraction,
    z: Fraction,
    companions: Sequence[Fraction],
    other: Fraction | None,
    rest: Fraction = NOTHING,
) -> Between:
    """Left side minus right side of the pointwise bound of Lemma D, for any R."""
    n, beta = len(companions), other is not None
    kappa = 2 + n + beta
    m = rest / kappa
    total = y + z + sum(companions) + (other or 0) + rest
    left = kappa**2 * y * (y - z) / total if y else Q(0)
    xi = y / (y + m) if m else Q(1)
    y, z, companions = y + m, z + m, [t + m for t in companions]
    slack = Between(left, left) + (-kappa * (y - z))
    if m:
        slack += log(y / z).times(kappa * m)
    if other is not None:
        slack += -xi * (h(y, z) - h(y, other + m))
    for t in companions:
        slack = slack + weighted_g(z, y, m).times(Q(-1)) + weighted_g(z, t, m)
    return slack


def stationary(P: list[list[Fraction]]) -> list[Fraction]:
    """pi P = pi, by Gauss-Jordan elimination of (I - P)^T with the last equation replaced by sum 1."""
    n = len(P)
    A = [[Q(i == j) - P[j][i] for j in range(n)] + [Q(0)] for i in range(n - 1)] + [
        [Q(1)] * (n + 1)
    ]
    for i in range(n):
        pivot = next(row for row in range(i, n) if A[row][i])
        A[i], A[pivot] = A[pivot], A[i]
        A[i] = [x / A[i][i] for x in A[i]]
        for row in range(n):
            if row != i and A[row][i]:
                A[row] = [a - A[row][i] * b for a, b in zip(A[row], A[i], strict=True)]
    return [row[-1] for row in A]


def windows(
    P: list[list[Fraction]], lags: Sequence[int], k: int, position: int | None = None
) -> Iterator[tuple[Fraction, dict[int, int]]]:
    """The state at each lag and its probability, over all that is possible.

    With a `position` (from 1) the sequence is Algorithm 1's: its first max(lags) tokens are independent draws.
    """
    pi, last = stationary(P), max(lags)
    i = position if position is not None else 10**6
    tokens = sorted({i - lag for lag in lags})
    links: list[tuple[int, int | None, list[list[Fraction]]]] = []
    for t in tokens:
        older = [s for s in tokens if s < t and (t - s) % k == 0]
        steps = (t - max(older)) // k if older else 0
        if older and position is not None and t <= last:
            older = []  # an independent draw
        if older and position is not None and max(older) <= last - k:
            older = []  # the older token has no descendants: lag k begins after the first draws
        links.append(
            (tokens.index(t), tokens.index(max(older)) if older else None, power(P, steps))
        )
    for window in product(range(len(P)), repeat=len(tokens)):
        chance = Q(1)
        for new, old, step in links:
            chance *= pi[window[new]] if old is None else step[window[old]][window[new]]
        if chance:
            yield chance, {i - t: state for t, state in zip(tokens, window, strict=True)}


def free_gaps(
    P: list[list[Fraction]],
    f: Sequence[Fraction],
    lags: Sequence[int],
    k: int,
    position: int | None = None,
) -> dict[int, Fraction]:
    """gamma_f for every rival r, f free of P."""
    gaps = dict.fromkeys((r for r in lags if r != k), Q(0))
    for chance, at in windows(P, lags, k, position):
        y = f[at[k]]
        if y:
            share = chance * y / sum(f[x] for x in at.values())
            for r in gaps:
                gaps[r] += share * (y - f[at[r]])
    return gaps


def free_betweenness(
    P: list[list[Fraction]], f: Sequence[Fraction], lags: Sequence[int], k: int, r: int, other: int
) -> tuple[Fraction, Fraction]:
    """E[(Y-Z)(Y-L)/Sigma] for f at the lags k, r and another, and E[(Y-Z)^2/Sigma]."""
    between = square = Q(0)
    for chance, at in windows(P, lags, k):
        total = sum(f[x] for x in at.values())
        if total:
            y, z = f[at[k]], f[at[r]]
            between += chance * (y - z) * (y - f[at[other]]) / total
            square += chance * (y - z) ** 2 / total
    return between, square


def power(P: list[list[Fraction]], steps: int) -> list[list[Fraction]]:
    result = [[Q(i == j) for j in range(len(P))] for i in range(len(P))]
    for _ in range(steps):
        result = [
            [sum((a * P[x][j] for x, a in enumerate(row)), Q(0)) for j in range(len(P))]
            for row in result
        ]
    return result


def cycle_gap(f: Sequence[int], lags: Sequence[int], k: int, r: int) -> Fraction:
    """gamma_f for P a cycle of len(f) states, k = 1 or all lags multiples of k: the mean along the cycle."""
    n, total = len(f), Q(0)
    for i in range(n):
        at = {lag: f[(i - lag // k) % n] for lag in lags}
        if at[k]:
            total += Q(at[k] * (at[k] - at[r]), sum(at.values()))
    return total / n
