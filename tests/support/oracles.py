"""Slow, obvious versions of the definitions, in plain Python loops. They share no code with `sih`.

A sequence is a list of ints, P a list of rows, positions are 0-based. `first` is max(lags).
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

Row = list[float]


def stationary(P: list[list[Fraction]]) -> list[Fraction]:
    """Solve pi P = pi, sum pi = 1 exactly, by Gauss-Jordan elimination over the rationals."""
    n = len(P)
    A = [[P[j][i] - (1 if i == j else 0) for j in range(n)] for i in range(n)]
    A[-1] = [Fraction(1)] * n
    b = [Fraction(0)] * (n - 1) + [Fraction(1)]
    for column in range(n):
        pivot = next(r for r in range(column, n) if A[r][column] != 0)
        A[column], A[pivot], b[column], b[pivot] = A[pivot], A[column], b[pivot], b[column]
        for r in range(n):
            if r != column and A[r][column] != 0:
                factor = A[r][column] / A[column][column]
                A[r] = [x - factor * y for x, y in zip(A[r], A[column], strict=True)]
                b[r] -= factor * b[column]
    return [b[i] / A[i][i] for i in range(n)]


def likelihood(tokens: list[int], P: list[Row], pi: Row, lag: int, first: int) -> Fraction:
    """prod_{i < first} pi(x_i) prod_{i >= first} P(x_{i-lag}, x_i), exactly."""
    result = Fraction(1)
    for i, token in enumerate(tokens):
        result *= Fraction(pi[token]) if i < first else Fraction(P[tokens[i - lag]][token])
    return result


def posterior(tokens: list[int], P: list[Row], pi: Row, lags: list[int], prior: Row) -> Row:
    """P(lag | all of tokens), by Bayes' rule on the exact likelihoods."""
    joint = [
        Fraction(p) * likelihood(tokens, P, pi, k, max(lags))
        for k, p in zip(lags, prior, strict=True)
    ]
    return [float(j / sum(joint)) for j in joint]


def bma(tokens: list[int], P: list[Row], pi: Row, lags: list[int], prior: Row) -> Row:
    """The law of the token after `tokens`: P(tokens + [s]) / P(tokens), summing over lags, nothing cleverer."""
    first = max(lags)
    if len(tokens) < first:
        return list(pi)
    now = sum(
        Fraction(p) * likelihood(tokens, P, pi, k, first) for k, p in zip(lags, prior, strict=True)
    )
    then = [
        sum(
            Fraction(p) * likelihood([*tokens, s], P, pi, k, first)
            for k, p in zip(lags, prior, strict=True)
        )
        for s in range(len(P))
    ]
    return [float(t / now) for t in then]


def maximum_likelihood(tokens: list[int], P: list[Row], pi: Row, lags: list[int]) -> Row:
    """The row of P that the likeliest lag copies; the smallest of equally likely lags."""
    if len(tokens) < max(lags):
        return list(pi)
    best = max(lags, key=lambda k: (likelihood(tokens, P, pi, k, max(lags)), -k))
    return list(P[tokens[len(tokens) - best]])


def selective_weights(
    tokens: list[int], P: list[Row], lags: list[int], beta: float, evidence: str, temper: float
) -> Row:
    """Prop. 1's weights after all of `tokens`."""
    first = max(lags)
    totals = [0.0] * len(lags)
    for n in range(first, len(tokens)):
        powers = [P[tokens[n - k]][tokens[n]] ** temper for k in lags]
        for j, power in enumerate(powers):
            totals[j] += power / sum(powers)
    count = len(tokens) - first
    if evidence == "mean" and count > 0:
        totals = [t / count for t in totals]
    if beta == math.inf:
        winners = [t == max(totals) for t in totals]
        return [w / sum(winners) for w in winners]
    weights = [math.exp(beta * (t - max(totals))) for t in totals]
    return [w / sum(weights) for w in weights]


def copy_mixture(weights: Row, tokens: list[int], P: list[Row], pi: Row, lags: list[int]) -> Row:
    """sum_k w_k P(token at distance k - 1 from the end, .)."""
    if len(tokens) < max(lags):
        return list(pi)
    return [
        sum(w * P[tokens[len(tokens) - k]][s] for w, k in zip(weights, lags, strict=True))
        for s in range(len(P))
    ]


def ngram(tokens: list[int], num_states: int, pi: Row, order: int, pseudo_count: float) -> Row:
    """Count what followed the last `order` tokens earlier in the same sequence."""
    if len(tokens) < order:
        return list(pi)
    context = tokens[-order:]
    followers = Counter(
        tokens[j + order] for j in range(len(tokens) - order) if tokens[j : j + order] == context
    )
    total = sum(followers.values()) + pseudo_count
    if total == 0:
        return list(pi)
    return [(followers[s] + pseudo_count * pi[s]) / total for s in range(num_states)]


def kl(truth: Row, prediction: Row) -> float:
    return sum(p * math.log(p / q) for p, q in zip(truth, prediction, strict=True) if p > 0)
