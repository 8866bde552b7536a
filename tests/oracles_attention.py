"""Numbers on attention matrices, in plain loops. Shares no code with `sih`."""

from __future__ import annotations

import itertools
import math
import statistics

Matrix = list[list[float]]


def variation(a: list[float], b: list[float]) -> float:
    """The largest difference in probability over all sets of keys: those where a is above b."""
    return sum(x - y for x, y in zip(a, b, strict=True) if x > y)


def cheapest(cost: Matrix) -> float:
    """The least total over all ways to give each row a column of its own."""
    rows, columns = len(cost), len(cost[0])
    return min(sum(cost[r][c] for r, c in enumerate(order)) for order in itertools.permutations(range(columns), rows))


def centred_correlation(x: Matrix, y: Matrix, keys: list[list[int]]) -> float:
    """Pearson's, over pairs (query, key), of what is left when every query's mean over its keys is taken off."""
    left: list[tuple[float, float]] = []
    for query, allowed in enumerate(keys):
        if allowed:
            mean_x = statistics.fmean(x[query][key] for key in allowed)
            mean_y = statistics.fmean(y[query][key] for key in allowed)
            left += [(x[query][key] - mean_x, y[query][key] - mean_y) for key in allowed]
    top = sum(a * b for a, b in left)
    return top / math.sqrt(sum(a * a for a, _ in left) * sum(b * b for _, b in left))


def without_positions(x: list[Matrix], keys: list[list[int]]) -> list[Matrix]:
    """What is left of x[sequence][query][key] when its mean over sequences is taken off."""
    out = [[list(row) for row in matrix] for matrix in x]
    for query, allowed in enumerate(keys):
        for key in allowed:
            mean = statistics.fmean(matrix[query][key] for matrix in x)
            for matrix in out:
                matrix[query][key] -= mean
    return out
