"""What the tasks beyond the paper's mean, in plain loops and exact fractions. They share no code with `sih`."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np

Row = list[float]


def transitions(tokens: list[int], lag: int, first: int) -> Counter[tuple[int, int]]:
    """How often each transition was made at this lag, by the tokens past the first ones."""
    return Counter((tokens[i - lag], tokens[i]) for i in range(first, len(tokens)))


def marginal_likelihood(
    tokens: list[int], states: int, lag: int, first: int, alpha: Fraction
) -> Fraction:
    """The Dirichlet-multinomial probability: rising factorials of alpha, one for each transition, exactly."""
    result = Fraction(1, states) ** min(first, len(tokens))
    counts = transitions(tokens, lag, first)
    for a in range(states):
        row = [counts[a, b] for b in range(states)]
        for n in row:
            result *= math.prod((alpha + j for j in range(n)), start=Fraction(1))
        result /= math.prod((states * alpha + j for j in range(sum(row))), start=Fraction(1))
    return result


def fresh_posterior(
    tokens: list[int], states: int, lags: list[int], prior: Row, alpha: Fraction
) -> Row:
    """P(lag | tokens) by Bayes' rule on the marginal likelihoods."""
    pairs = zip(lags, prior, strict=True)
    joint = [
        Fraction(p) * marginal_likelihood(tokens, states, k, max(lags), alpha) for k, p in pairs
    ]
    return [float(j / sum(joint)) for j in joint]


def fresh_bma(tokens: list[int], states: int, lags: list[int], prior: Row, alpha: Fraction) -> Row:
    """P(tokens + [s]) / P(tokens), summed over the lags: nothing is predicted, everything is enumerated."""

    def evidence(sequence: list[int]) -> Fraction:
        pairs = zip(lags, prior, strict=True)
        return sum(
            (
                Fraction(p) * marginal_likelihood(sequence, states, k, max(lags), alpha)
                for k, p in pairs
            ),
            Fraction(0),
        )

    return [float(evidence([*tokens, s]) / evidence(tokens)) for s in range(states)]


def fresh_ml(tokens: list[int], states: int, lags: list[int], alpha: Fraction) -> Row:
    """The posterior predictive law of the lag with the largest marginal likelihood, the smallest of equals."""
    if len(tokens) < max(lags):
        return [1 / states] * states
    best = max(lags, key=lambda k: (marginal_likelihood(tokens, states, k, max(lags), alpha), -k))
    now = marginal_likelihood(tokens, states, best, max(lags), alpha)
    return [
        float(marginal_likelihood([*tokens, s], states, best, max(lags), alpha) / now)
        for s in range(states)
    ]


def quadrature_likelihood(tokens: list[int], lag: int, first: int, alpha: float) -> float:
    """The probability of a sequence of two states, P integrated out by Gauss's rule on a grid of both rows.

    The integrand is a polynomial times the density of Beta(alpha, alpha): Legendre's rule is exact for alpha 1 and 2,
    Chebyshev's for 1/2.
    """
    if alpha == 0.5:
        x, w = np.polynomial.chebyshev.chebgauss(40)
    else:
        x, w = np.polynomial.legendre.leggauss(40)
        w = w * ((1 + x) * (1 - x)) ** (alpha - 1)
    p, w = (1 + x) / 2, w / w.sum()
    total = 0.0
    for (p0, w0), (p1, w1) in itertools.product(zip(p, w, strict=True), repeat=2):
        P = [[p0, 1 - p0], [p1, 1 - p1]]
        total += (
            w0 * w1 * math.prod(P[tokens[i - lag]][tokens[i]] for i in range(first, len(tokens)))
        )
    return float(total / 2 ** min(first, len(tokens)))


def plug_in(
    tokens: list[int], states: int, lags: list[int], prior: Row, c: float
) -> tuple[Row, Row]:
    """Weights and law of the estimate by counts, put in P's place: in the likelihood of the tokens, and in the law."""
    first = max(lags)
    scores, laws = [], []
    for lag, p in zip(lags, prior, strict=True):
        counts = transitions(tokens, lag, first)
        rows = [[counts[a, b] + c for b in range(states)] for a in range(states)]
        P = [[x / sum(row) for x in row] for row in rows]
        scores.append(math.log(p) + sum(n * math.log(P[a][b]) for (a, b), n in counts.items()))
        laws.append(P[tokens[len(tokens) - lag]] if len(tokens) >= first else [1 / states] * states)
    weights = [math.exp(score - max(scores)) for score in scores]
    weights = [w / sum(weights) for w in weights]
    return weights, [
        sum(w * law[s] for w, law in zip(weights, laws, strict=True)) for s in range(states)
    ]


def in_context_bigram(tokens: list[int], states: int, alpha: float) -> Row:
    """Edelman et al. (2024), Sec. 2: (n_ab + alpha) / (n_a + S alpha), by running through the sequence."""
    last = tokens[-1]
    followed = [0] * states
    for before, after in itertools.pairwise(tokens):
        if before == last:
            followed[after] += 1
    return [(n + alpha) / (sum(followed) + states * alpha) for n in followed]


def switching_bma(
    tokens: list[int], P: list[Row], pi: Row, lags: list[int], rate: float
) -> tuple[Row, list[Fraction]]:
    """The law of the next token, and the weight of each lag that it may follow, by summing over all paths of lags."""
    first, others = max(lags), max(1, len(lags) - 1)
    if len(tokens) < first:
        return list(pi), [Fraction(1, len(lags))] * len(lags)
    stay, move = 1 - Fraction(rate), Fraction(rate) / others
    steps = len(tokens) - first
    joint = [Fraction(0)] * len(
        lags
    )  # P(tokens, lag of the next one), up to the first tokens' common factor
    for path in itertools.product(range(len(lags)), repeat=steps + 1):
        p = Fraction(1, len(lags))
        for before, after in itertools.pairwise(path):
            p *= stay if before == after else move
        for i, k in zip(range(first, len(tokens)), path, strict=False):
            p *= Fraction(P[tokens[i - lags[k]]][tokens[i]])
        joint[path[-1]] += p
    weights = [j / sum(joint) for j in joint]
    law = [
        float(
            sum(
                w * Fraction(P[tokens[len(tokens) - k]][s])
                for w, k in zip(weights, lags, strict=True)
            )
        )
        for s in range(len(P))
    ]
    return law, weights
