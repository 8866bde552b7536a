"""Claim 1 by plain loops over the definition. Shares no code with `sih`.

P is a list of rows of Fractions or floats; a window is (X_{i-m}, .., X_{i-1}) with m the largest lag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

Row = list[Any]


def windows(
    P: list[Row], start: Row, true_lag: int, depth: int
) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every window of `depth` tokens of a lag-`true_lag` process whose first true_lag tokens have law `start`."""
    for window in product(range(len(P)), repeat=depth):
        chance: Any = 1
        for j, token in enumerate(window):
            chance *= start[token] if j < true_lag else P[window[j - true_lag]][token]
        if chance:
            yield window, chance


def expectations(P: list[Row], start: Row, lags: list[int], true_lag: int) -> list[Any]:
    """E[p_r / sum_l p_l] for every r; the next token s is drawn from row X_{i-k}, so s has p_k > 0."""
    total: list[Any] = [0] * len(lags)
    for window, chance in windows(P, start, true_lag, max(lags)):
        for s in range(len(P)):
            p = [P[window[max(lags) - lag]][s] for lag in lags]
            drawn = P[window[max(lags) - true_lag]][s]
            if drawn:
                for j in range(len(lags)):
                    total[j] += chance * drawn * p[j] / sum(p)
    return total


def normaliser(P: list[Row], start: Row, lags: list[int], true_lag: int, a: int, b: int) -> Any:
    """sum_s E[(p_a - p_b)^2 / sum_l p_l], every s counted alike."""
    total: Any = 0
    for window, chance in windows(P, start, true_lag, max(lags)):
        for s in range(len(P)):
            p = [P[window[max(lags) - lag]][s] for lag in lags]
            if sum(p):
                total += chance * (p[lags.index(a)] - p[lags.index(b)]) ** 2 / sum(p)
    return total


def far_expectations(P: Any, pi: Any, lags: list[int], true_lag: int) -> list[float]:
    """The same for lags too far back to enumerate windows: only the X_{i-l} are, linked by powers of P (NumPy)."""
    import numpy as np

    total = [0.0] * len(lags)
    for values in product(range(len(P)), repeat=len(lags)):
        at = dict(zip(lags, values, strict=True))
        chance = 1.0
        for lag in lags:
            older = [other for other in lags if other > lag and (other - lag) % true_lag == 0]
            if older:
                power = np.linalg.matrix_power(P, (min(older) - lag) // true_lag)
                chance *= power[at[min(older)], at[lag]]
            else:
                chance *= pi[at[lag]]
        for s in range(len(P)):
            p = [P[at[lag]][s] for lag in lags]
            drawn = P[at[true_lag]][s]
            if drawn:
                for j in range(len(lags)):
                    total[j] += chance * drawn * p[j] / sum(p)
    return total


def lead_distribution(
    P: list[Row],
    start: Row,
    lags: list[int],
    true_lag: int,
    gain: Callable[[list[Any]], float],
    counts: list[bool],
) -> dict[float, float]:
    """The law of the sum of gain(p) over the transitions that count, after len(counts) of them.

    The first max(lags) tokens are independent draws from `start`. Sums are rounded to 1e-9 to be told apart.
    """
    depth = max(lags)
    state: dict[tuple[tuple[int, ...], float], float] = {}
    for window in product(range(len(P)), repeat=depth):
        chance = 1.0
        for token in window:
            chance *= start[token]
        state[window, 0.0] = chance
    for counted in counts:
        new: dict[tuple[tuple[int, ...], float], float] = {}
        for (window, total), chance in state.items():
            for s in range(len(P)):
                drawn = P[window[depth - true_lag]][s]
                if drawn:
                    p = [P[window[depth - lag]][s] for lag in lags]
                    key = ((*window[1:], s), round(total + gain(p), 9) if counted else total)
                    new[key] = new.get(key, 0.0) + chance * drawn
        state = new
    law: dict[float, float] = {}
    for (_, total), chance in state.items():
        law[total] = law.get(total, 0.0) + chance
    return law


def as_fractions(P: list[list[float]]) -> list[list[Fraction]]:
    rows = [[Fraction(x) for x in row] for row in P]
    return [[x / sum(row) for x in row] for row in rows]
