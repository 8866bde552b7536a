"""Claim 1 in exact rational arithmetic, by enumeration: slow but certain, to check a
counterexample.
"""

import operator
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from sih.base.types import TransitionMatrix
from sih.claim.exact import chains
from sih.task import check_lags
from sih.task.matrices import as_transition_matrix

WINDOW_LIMIT = 10**6
"""The most values of (X_{i-l}) that are enumerated."""

Matrix = list[list[Fraction]]


def rational_expectations(
    P: TransitionMatrix, lags: Sequence[int], true_lag: int
) -> list[Fraction]:
    r"""Return $\mathbb E[p_r/\sum_l p_l]$ for every r, summed over every window and
    next state without rounding.

    The floats of P are converted exactly, and each row is divided by its sum, so that
    rows sum to exactly 1.
    """
    lags = check_lags(lags)
    if true_lag not in lags:
        raise ValueError(f"the true lag is one of the lags {lags}; got {true_lag}")
    rows = [[Fraction(x) for x in row] for row in as_transition_matrix(P).tolist()]
    exact = [[x / sum(row) for x in row] for row in rows]
    states = range(len(exact))
    if (windows := len(exact) ** len(lags)) > WINDOW_LIMIT:
        asked = f"{len(exact)} states and {len(lags)} lags have {windows} windows"
        raise ValueError(f"{asked}; at most {WINDOW_LIMIT} are enumerated")
    pi = rational_stationary(exact)
    firsts, links = [lags.index(chain.lags[0]) for chain in chains(lags, true_lag)], []
    for chain in chains(lags, true_lag):
        neighbours = zip(chain.lags, chain.lags[1:], chain.steps[1:], strict=False)
        links += [
            (lags.index(new), lags.index(old), _power(exact, steps))
            for old, new, steps in neighbours
        ]
    own = lags.index(true_lag)
    total = [Fraction(0)] * len(lags)
    for window in product(states, repeat=len(lags)):
        weight = Fraction(1)
        for first in firsts:
            weight *= pi[window[first]]
        for new, old, power in links:
            weight *= power[window[old]][window[new]]
        if not weight:
            continue
        for s in states:
            p = [exact[x][s] for x in window]
            if p[own]:  # otherwise s cannot follow, and the denominator may vanish
                share = weight * p[own] / sum(p)
                total = [t + share * x for t, x in zip(total, p, strict=True)]
    return total


def rational_stationary(P: Matrix) -> list[Fraction]:
    """Return the solution of pi P = pi with sum 1, by the same elimination as
    `sih.stationary_distribution`.
    """
    A = [row[:] for row in P]
    for n in range(len(A) - 1, 0, -1):
        leave = sum(A[n][:n])
        for i in range(n):
            A[i][n] /= leave
            for j in range(n):
                A[i][j] += A[i][n] * A[n][j]
    pi = [Fraction(1)]
    for n in range(1, len(A)):
        pi.append(sum((pi[i] * A[i][n] for i in range(n)), Fraction(0)))
    return [x / sum(pi) for x in pi]


def _power(P: Matrix, exponent: int) -> Matrix:
    result, columns = P, list(zip(*P, strict=True))
    for _ in range(exponent - 1):
        result = [
            [sum(map(operator.mul, row, column), Fraction(0)) for column in columns]
            for row in result
        ]
    return result
