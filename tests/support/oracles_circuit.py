"""What a selective induction circuit computes, in plain loops. Shares no code with `sih`. Positions are 0-based."""

from __future__ import annotations

import math

Row = list[float]


def normalised(
    tokens: list[int], P: list[Row], lags: list[int], n: int, temper: float = 1.0
) -> Row:
    """p-tilde of every lag at position n; a lag that reaches before the start has none."""
    powers = [P[tokens[n - k]][tokens[n]] ** temper if n >= k else 0.0 for k in lags]
    return [power / sum(powers) for power in powers]


def softmax(scores: Row) -> Row:
    weights = [math.exp(s - max(scores)) for s in scores]
    return [w / sum(weights) for w in weights]


def mean_evidence_weights(
    tokens: list[int],
    P: list[Row],
    lags: list[int],
    colours: list[int],
    i: int,
    beta: float,
    temper: float = 1.0,
) -> Row:
    """The paper's circuit at position i: every head's own average, heads weighed by their share of the offsets."""
    first = max(lags)
    heads = max(colours) + 1
    scores = [0.0] * len(lags)
    for head in range(heads):
        seen = [n for n in range(first, i + 1) if colours[(i - n) % len(colours)] == head]
        share = colours.count(head) * heads / sum(c >= 0 for c in colours)
        for n in seen:
            for j, p in enumerate(normalised(tokens, P, lags, n, temper)):
                scores[j] += beta * share / len(seen) * p
    return softmax(scores)


def sum_evidence_weights(
    tokens: list[int],
    P: list[Row],
    lags: list[int],
    colours: list[int],
    i: int,
    beta: float,
    mean: bool = False,
) -> Row:
    """Every used transition alike: added up, or averaged over all that are used."""
    used = [n for n in range(max(lags), i + 1) if colours[(i - n) % len(colours)] >= 0]
    scores = [0.0] * len(lags)
    for n in used:
        for j, p in enumerate(normalised(tokens, P, lags, n)):
            scores[j] += beta * p / (len(used) if mean else 1)
    return softmax(scores)


def two_lag_weights(tokens: list[int], P: list[Row], lags: list[int], i: int, beta: float) -> Row:
    """The single head for two lags: each key has averaged the transitions in its own blocks of d offsets."""
    low, high = lags
    d = high - low
    scores = []
    for j, k in enumerate(lags):
        key = i - k + 1
        seen = [n for n in range(high, key + 1) if (key - n) % (2 * d) < d]
        terms = [normalised(tokens, P, lags, n) for n in seen]
        scores.append(beta / len(seen) * sum(p[j] - p[1 - j] for p in terms))
    return softmax(scores)


def law(weights: Row, tokens: list[int], P: list[Row], lags: list[int], i: int) -> Row:
    return [
        sum(w * P[tokens[i - k + 1]][s] for w, k in zip(weights, lags, strict=True))
        for s in range(len(P))
    ]
