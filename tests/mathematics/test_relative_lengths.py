"""Theorem R3: no fixed weights are Bayes at every length; sums from constant weights are not exact."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy
from mathematics.relative_kind import Array, RelativeKind, bayes, log_of, posterior, softmax

pytestmark = pytest.mark.slow

A, B = 0, 1
P = np.array([[0.8, 0.2], [0.35, 0.65]])
CHI = math.log(P[A, A] * P[B, B] / (P[A, B] * P[B, A]))


def two_sequences(lags: tuple[int, ...], k: int, length: int) -> Array:
    """Return the sequences of the proof, which differ in one token about the middle."""
    tokens = np.full((2, length), A)
    middle = length // 2
    tokens[:, middle] = B
    tokens[1, middle + k] = B
    tokens[:, length - k] = B  # position length - k + 1, the candidate of lag k
    return tokens


def log_likelihoods(tokens: Array, lags: tuple[int, ...]) -> Array:
    """Return the log-likelihood of each lag over the transitions that all lags have."""
    last = max(lags)
    found = [log_of(P)[tokens[last - k : len(tokens) - k], tokens[last:]].sum() for k in lags]
    return np.array(found)


@pytest.mark.parametrize("lags", [(1, 2), (1, 2, 3), (1, 3, 4), (2, 5)])
@pytest.mark.parametrize("length", [60, 200])
def test_one_token_moves_the_log_odds_by_chi(lags: tuple[int, ...], length: int) -> None:
    """Lag k gains chi against every other lag; the log-odds do not depend on the length."""
    for n, k in enumerate(lags):
        first, second = (log_likelihoods(x, lags) for x in two_sequences(lags, k, length))
        gains = (second - first) - (second - first)[1 - min(n, 1)]
        assert gains == pytest.approx(CHI * (np.arange(len(lags)) == n), abs=1e-10)
        longer = log_likelihoods(two_sequences(lags, k, 2 * length)[0], lags)
        assert longer - longer[0] == pytest.approx(first - first[0], abs=1e-9)


def bayes_law(tokens: Array, lags: tuple[int, ...]) -> Array:
    weights = softmax(log_likelihoods(tokens, lags))
    return np.asarray(weights @ P[[tokens[len(tokens) - k] for k in lags]])


def random_model(rng: np.random.Generator, heads: tuple[int, ...]) -> RelativeKind:
    """Return weights that are drawn for every pair of blocks."""
    model = RelativeKind(2, 4, heads)
    for layer, count in enumerate(heads, start=1):
        before = model.blocks(layer - 1)
        for head in (f"{layer}.{h}" for h in range(1, count + 1)):
            for query in before:
                for key in (*before, "offset"):
                    block = model.block(head, query, key)
                    block[:] = 0.2 * rng.normal(size=block.shape)
    for name in model.blocks(len(heads)):
        model.read(name)[:] = rng.normal(size=model.read(name).shape)
    return model


@pytest.mark.parametrize("heads", [(1, 1), (1, 1, 1), (2, 1, 1)])
def test_one_token_moves_fixed_weights_by_order_one_over_the_length(heads: tuple[int, ...]) -> None:
    """The last row of random models of two and three layers: length times the change is bounded."""
    for seed in range(3):
        model = random_model(np.random.default_rng(seed), heads)
        scaled = []
        for length in (100, 400):
            output = model.run(two_sequences((1, 2), 2, length)).output[:, -1]
            scaled.append(length * abs(output[0] - output[1]).max())
        assert scaled[-1] < 1.3 * scaled[0]  # 2 if the change fell as the root of the length


def test_the_bayes_circuit_fails_at_lengths_beyond_its_start_tokens_weight() -> None:
    """Bayes' own distribution changes alike at all lengths; that of a light start token less and less."""
    lags, prior = (1, 2), np.array([0.5, 0.5])
    model = bayes(P, lags, prior, gamma=1e-3, weight=100.0, symmetric=True, lam=50.0)
    exact, found = [], []
    for length in (50, 200, 800):
        tokens = two_sequences(lags, 1, length)
        exact.append(abs(bayes_law(tokens[0], lags) - bayes_law(tokens[1], lags)).max())
        output = model.run(tokens).output[:, -1]
        found.append(abs(output[0] - output[1]).max())
    assert exact == pytest.approx([exact[0]] * 3, abs=1e-9)
    assert exact[0] > 0.1
    assert found[0] > 0.7 * exact[0]
    assert found[2] < 0.2 * exact[0]


def test_the_law_of_the_test_is_the_posterior_s() -> None:
    tokens = two_sequences((1, 2), 1, 40)[1]
    rows = [[P[tokens[i - k], tokens[i]] for k in (1, 2)] for i in range(2, 40)]
    weights = posterior(np.array([0.5, 0.5]))(np.array(rows))
    assert bayes_law(tokens, (1, 2)) == pytest.approx(weights @ P[[tokens[-1], tokens[-2]]])


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_constant_weights_make_at_most_as_many_sums_exact_as_there_are_heads(heads: int) -> None:
    """phi(n) = sum of r / (n + c): phi(n) = 1 is an equation of degree H, and H counts can be had."""
    n = sympy.symbols("n")
    r, c = (sympy.symbols(f"{name}1:{heads + 1}", positive=True) for name in "rc")
    phi = sum(r[h] / (n + c[h]) for h in range(heads))
    numerator, _ = sympy.fraction(sympy.together(phi - 1))
    polynomial = sympy.Poly(sympy.expand(numerator), n)
    assert polynomial.degree() == heads
    assert abs(polynomial.LC()) == 1
    weights = [10 * (h + 1) for h in range(heads)]
    counts = list(range(1, heads + 1))
    system = sympy.Matrix([[sympy.Rational(1, m + w) for w in weights] for m in counts])
    reads = system.solve(sympy.ones(heads, 1))
    exact = [
        m for m in range(50) if sum(x / (m + w) for x, w in zip(reads, weights, strict=True)) == 1
    ]
    assert exact == counts
