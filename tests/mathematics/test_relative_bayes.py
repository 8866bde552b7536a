"""Theorem R2 and Lemma R: a heavy start token turns means into sums, and what that costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mathematics.relative_kind import (
    Array,
    Lags,
    bayes,
    errors,
    log_of,
    posterior,
    sequences,
    softmax,
)

pytestmark = pytest.mark.slow


def kappa(least: float) -> float:
    """Return max of w (1 - w) log[w (1 - m) / (m (1 - w))] over w in (0, 1)."""
    w = np.linspace(1e-6, 1 - 1e-6, 200_001)
    return float((w * (1 - w) * np.log(w * (1 - least) / (least * (1 - w)))).max())


@pytest.mark.parametrize(("lags", "printed"), [(2, 0.2239), (3, 0.3368), (4, 0.4127), (5, 0.4699)])
def test_printed_constants(lags: int, printed: float) -> None:
    assert kappa(1 / lags) == pytest.approx(printed, abs=5e-5)


def tilted(prior: Array, evidence: Array, factor: float) -> Array:
    return softmax(np.log(prior) + factor * evidence)


evidences = st.lists(st.floats(-30, 30), min_size=5, max_size=5)
priors = st.lists(st.floats(0.02, 1), min_size=2, max_size=5)
factors = st.floats(-3, 3).map(math.exp)


@given(priors, evidences, factors)
def test_lemma_r(masses: list[float], drawn: list[float], factor: float) -> None:
    """A common factor on the evidence, whatever the evidence."""
    prior = np.array(masses) / sum(masses)
    evidence = np.array(drawn[: len(prior)])
    moved = abs(tilted(prior, evidence, factor) - tilted(prior, evidence, 1.0)).max()
    assert moved <= kappa(prior.min()) * abs(math.log(factor)) + 1e-12


@given(priors, evidences)
def test_both_bounds_of_the_derivative(masses: list[float], drawn: list[float]) -> None:
    """The two inequalities of the proof, lag by lag, and the derivative itself."""
    prior = np.array(masses) / sum(masses)
    evidence = np.array(drawn[: len(prior)])
    w, least = tilted(prior, evidence, 1.0), prior.min()
    step = 1e-5
    up, down = (tilted(prior, evidence, math.exp(x)) for x in (step, -step))
    e = np.log(np.maximum(w, 1e-300) / prior)
    for k, (own, share) in enumerate(zip(w, prior, strict=True)):
        others = np.arange(len(w)) != k
        derivative = own * (w[others] * (e[k] - e[others])).sum()
        assert derivative == pytest.approx((up[k] - down[k]) / (2 * step), abs=1e-5)
        if not 1e-9 < own < 1 - 1e-9:
            continue
        high = own * (1 - own) * math.log(own * (1 - share) / (share * (1 - own)))
        low = -own * (1 - own) * math.log((1 - own) * share / (least * own))
        assert low - 1e-9 <= derivative <= high + 1e-9
        assert max(abs(low), abs(high)) >= abs(derivative) - 1e-9
        assert high <= kappa(least) + 1e-9
        assert low >= -kappa(least) - 1e-9


@pytest.mark.parametrize("lags", [2, 3, 5])
def test_lemma_r_is_attained(lags: int) -> None:
    """One lag against equal others, and a factor near 1: no smaller constant would do."""
    prior = np.full(lags, 1 / lags)
    w = np.linspace(0.01, 0.99, 981)
    log_odds = np.log(w / (1 - w)) + math.log(lags - 1)
    evidence = log_odds[:, None] * np.eye(lags)[0]
    moved = abs(tilted(prior, evidence, 1.001) - tilted(prior, evidence, 1.0)).max()
    assert moved == pytest.approx(kappa(1 / lags) * math.log(1.001), rel=2e-3)


def truncation(gamma: float, spread: float, *, symmetric: bool) -> float:
    """Return what a transition adds at most to the error of a log-odds."""
    if symmetric:
        square, cube = gamma**2 / 6, spread**3
        return square * cube * (1 + 2 * gamma * spread) * math.exp(gamma * spread)
    return gamma / 2 * spread**2 * (1 + gamma * spread) * math.exp(gamma * spread)


@given(
    st.lists(st.floats(-6, 0), min_size=2, max_size=6),
    st.floats(1e-3, 0.5),
    st.booleans(),
)
def test_a_tempered_transition(logs: list[float], gamma: float, symmetric: bool) -> None:
    column = np.array(logs)
    spread, K = float(np.ptp(column)), len(column)
    if symmetric:
        found = K / (2 * gamma) * (softmax(gamma * column) - softmax(-gamma * column))
    else:
        found = K / gamma * softmax(gamma * column)
    error = found - column
    assert np.ptp(error) <= truncation(gamma, spread, symmetric=symmetric) + 1e-9


SETS: list[Lags] = [(1, 2, 3), (1, 3, 4), (3, 5, 7), (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("lags", SETS)
@pytest.mark.parametrize(
    ("gamma", "weight", "symmetric", "small"),
    [(1e-3, 1e6, False, 5e-2), (1e-2, 1e5, True, 1e-2), (1e-3, 1e7, True, 1e-4)],
)
def test_the_bound(lags: Lags, gamma: float, weight: float, symmetric: bool, small: float) -> None:
    """Weights of the lags against the posterior, in all rows from max(lags) on."""
    rng = np.random.default_rng(max(lags))
    P = 0.5 * rng.dirichlet(np.ones(5), 5) + 0.1
    K, length = len(lags), 100
    prior = np.arange(1, K + 1) / sum(range(1, K + 1))
    model = bayes(P, lags, prior, gamma=gamma, weight=weight, symmetric=symmetric, lam=50.0)
    tokens = sequences(rng, P, lags, length, count=3, random=3)
    spread, transitions = float(np.ptp(log_of(P), axis=0).max()), length - max(lags)
    delta = transitions * truncation(gamma, spread, symmetric=symmetric)
    bound = math.tanh(delta / 4) + kappa(prior.min()) * math.log1p(transitions / weight)
    found, _ = errors(model, tokens, P, lags, posterior(prior))
    assert found <= bound + 1e-9
    assert bound < small


def test_one_set_of_weights_at_every_length() -> None:
    """A start token of weight 2^50, and a lag that changes, so that log-odds stay small."""
    rng = np.random.default_rng(1)
    P, lags = rng.dirichlet(np.ones(5), 5), (1, 2, 3)
    prior = np.full(3, 1 / 3)
    model = bayes(P, lags, prior, gamma=3e-5, weight=2.0**50, symmetric=True, lam=50.0)
    for length in (32, 128, 512):
        tokens = sequences(rng, P, lags, length, count=1)
        for i in range(3, length):
            lag = lags[i // 16 % 3]
            tokens[0, i] = rng.choice(5, p=P[tokens[0, i - lag]])
        found, outputs = errors(model, tokens, P, lags, posterior(prior))
        assert found < 2e-8
        assert outputs < 2e-8


def test_a_light_start_token_errs_as_the_lemma_says() -> None:
    """With weight 10 the factor 10 / (n + 10) is far from 1, and the error is large."""
    rng = np.random.default_rng(1)
    P, lags = rng.dirichlet(np.ones(5), 5), (1, 2, 3)
    prior = np.full(3, 1 / 3)
    tokens = sequences(rng, P, lags, 60, count=2, random=2)
    found = {
        weight: errors(
            bayes(P, lags, prior, gamma=1e-3, weight=weight, symmetric=True, lam=50.0),
            tokens,
            P,
            lags,
            posterior(prior),
        )[0]
        for weight in (1e1, 1e4)
    }
    assert found[1e1] > 0.1 > 3e-3 > found[1e4]
