"""What a circuit for any parents computes, in plain loops over the table. Shares no code with `sih`."""

from __future__ import annotations

import math

Row = list[float]


def shares(
    tokens: list[int], P: list[Row], table: list[list[int]], n: int, power: float = 1.0
) -> Row:
    """p-tilde of every hypothesis at token n, which has a parent under each."""
    powers = [P[tokens[row[n]]][tokens[n]] ** power for row in table]
    return [each / sum(powers) for each in powers]


def selective_weights(
    tokens: list[int], P: list[Row], table: list[list[int]], i: int, beta: float, mean: bool = True
) -> Row:
    """The paper's estimator at row i: the sum, or mean, of p-tilde over the tokens that have parents."""
    seen = [n for n in range(i + 1) if table[0][n] >= 0]
    sums = [sum(shares(tokens, P, table, n)[h] for n in seen) for h in range(len(table))]
    scores = [beta * each / (max(len(seen), 1) if mean else 1) for each in sums]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def posterior(tokens: list[int], P: list[Row], table: list[list[int]], i: int, prior: Row) -> Row:
    """Bayes' rule over the hypotheses."""
    joint = list(prior)
    for h, row in enumerate(table):
        for n in range(i + 1):
            joint[h] *= P[tokens[row[n]]][tokens[n]] if row[n] >= 0 else 1.0
    return [each / sum(joint) for each in joint]


def law(weights: Row, tokens: list[int], P: list[Row], table: list[list[int]], i: int) -> Row:
    return [
        sum(w * P[tokens[row[i + 1]]][s] for w, row in zip(weights, table, strict=True))
        for s in range(len(P))
    ]


def clash(table: list[list[int]], n: int, other: int) -> bool:
    """Whether some position is a parent of both tokens, under other hypotheses of the one than of the other."""
    return any(
        {h for h, row in enumerate(table) if row[n] == m}
        != {h for h, row in enumerate(table) if row[other] == m}
        for m in {row[n] for row in table} & {row[other] for row in table}
    )
