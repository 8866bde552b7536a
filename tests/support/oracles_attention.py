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
    return min(
        sum(cost[r][c] for r, c in enumerate(order))
        for order in itertools.permutations(range(columns), rows)
    )


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


def part_by_offset(x: list[Matrix], keys: list[list[int]]) -> list[float]:
    """Of each sequence's variance within queries, the part that the mean at each offset over all sequences explains."""
    left: list[dict[tuple[int, int], float]] = []
    for matrix in x:
        rest = {}
        for query, allowed in enumerate(keys):
            for key in allowed:
                rest[query, key] = matrix[query][key] - statistics.fmean(
                    matrix[query][j] for j in allowed
                )
        left.append(rest)
    at: dict[int, list[float]] = {}
    for rest in left:
        for (query, key), value in rest.items():
            at.setdefault(query - key, []).append(value)
    means = {offset: statistics.fmean(values) for offset, values in at.items()}
    return [
        1
        - sum((v - means[q - k]) ** 2 for (q, k), v in rest.items())
        / sum(v * v for v in rest.values())
        for rest in left
    ]
