"""Theorem R1: heads [1,1,1] compute Prop. 1, in fractions in the limit and as weights."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from mathematics.relative_kind import (
    Lags,
    errors,
    mean_of_ratios,
    selective,
    sequences,
    sets_within,
)

pytestmark = pytest.mark.slow

Q = Fraction
SETS: list[Lags] = [(1, 2), (1, 2, 3), (1, 3, 4), (3, 5, 7), (2, 5), (1, 2, 4, 8), (4,), (1, 4, 9)]


def limit(keys: list[tuple[int, Fraction]]) -> list[Fraction]:
    """Return the softmax of scores a * lambda + log b as lambda grows, from the pairs (a, b)."""
    largest = max(a for a, _ in keys)
    kept = [b if a == largest else Q(0) for a, b in keys]
    return [b / sum(kept) for b in kept]


def masked(offset: int, kept: list[int], near: int) -> int:
    """Return the multiple of lambda at an offset: 0 if kept, -2 up to `near`, -8 beyond."""
    return 0 if offset in kept else -2 if offset <= near else -8


@pytest.mark.parametrize("lags", [*sets_within(4), (3, 5, 7), (1, 4, 9)])
def test_each_layer_in_the_limit(lags: Lags) -> None:
    """In fractions: what 1.1 and 2.1 store, and which keys 3.1 keeps, in every row."""
    rng = random.Random(len(lags) * 100 + max(lags))
    S, last, length = 3, max(lags), 2 * max(lags) + 5
    weights = [[Q(rng.randint(1, 9)) for _ in range(S)] for _ in range(S)]
    P = [[x / sum(row) for x in row] for row in weights]
    s = [-1, *(rng.randrange(S) for _ in range(length))]

    stored, sees_start = [], []
    for i in range(length + 1):
        keys = []
        for j in range(i + 1):
            mask = masked(i - j, list(lags), last)
            keys.append((4 + mask, Q(1)) if j == 0 else (mask, P[s[j]][s[i]]))
        attention = limit(keys)
        by_offset = [attention[i - o] if o <= i else Q(0) for o in range(last + 1)]
        stored.append([by_offset[k] for k in lags])
        sees_start.append(attention[0])
        total = sum(P[s[i - k]][s[i]] for k in lags) if i > last else Q(1)
        ratios = [P[s[i - k]][s[i]] / total if i > last else Q(0) for k in lags]
        assert sees_start[i] == (i <= last)
        assert i <= last or stored[i] == ratios

    for i in range(length + 1):
        scores = [-2 * int(sees_start[j]) + int(j == 0) for j in range(i + 1)]
        attention = limit([(score, Q(1)) for score in scores])
        z = [sum(a * stored[j][n] for j, a in enumerate(attention)) for n in range(len(lags))]
        late = range(last + 1, i + 1)
        assert z == [
            sum((stored[j][n] for j in late), Q(0)) / max(1, len(late)) for n in range(len(lags))
        ]
        candidates = [k - 1 for k in lags]
        tops = [4 * int(j == 0) + masked(i - j, candidates, last - 1) for j in range(i + 1)]
        kept = {j for j, top in enumerate(tops) if top == max(tops)}
        assert kept == ({i - k + 1 for k in lags} if i >= last else {0})


@pytest.mark.parametrize("lags", SETS)
def test_weights_compute_it_at_every_length(lags: Lags) -> None:
    """One set of weights, three lengths, every row, the first ones included."""
    rng = np.random.default_rng(max(lags))
    P = rng.dirichlet(np.ones(5), 5)
    prior = np.arange(1, len(lags) + 1) / sum(range(1, len(lags) + 1))
    for given in (None, prior):
        model = selective(P, lags, beta=100.0, lam=100.0, prior=given)
        for length in (20, 60, 150):
            tokens = sequences(rng, P, lags, length, count=2, random=2)
            weigh = mean_of_ratios(100.0, given)
            assert max(errors(model, tokens, P, lags, weigh)) < 1e-12


def test_weights_compute_it_for_all_sets_within_six() -> None:
    rng = np.random.default_rng(0)
    for lags in sets_within(6):
        P = rng.dirichlet(np.ones(3), 3)
        model = selective(P, lags, beta=30.0, lam=100.0)
        tokens = sequences(rng, P, lags, 16, count=2, random=1)
        assert max(errors(model, tokens, P, lags, mean_of_ratios(30.0))) < 1e-13


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4)])
def test_zero_entries(lags: Lags) -> None:
    rng = np.random.default_rng(1)
    P = np.array([[0, 0.5, 0.5, 0], [0.3, 0, 0.3, 0.4], [0.25, 0.25, 0.5, 0], [1, 0, 0, 0]])
    model = selective(P, lags, beta=20.0, lam=100.0)
    tokens = sequences(rng, P, lags, 80, count=3)
    assert max(errors(model, tokens, P, lags, mean_of_ratios(20.0))) < 1e-12


@pytest.mark.parametrize("lam", [6.0, 8.0, 10.0, 14.0, 20.0])
def test_finite_masks(lam: float) -> None:
    """The bound of the page, on the task's sequences and on random ones."""
    rng = np.random.default_rng(2)
    lags, beta, length = (1, 2, 3), 5.0, 60
    P = 0.5 * rng.dirichlet(np.ones(5), 5) + 0.1
    worst = float(-np.log(P.min()))
    eps = (length + 1) * math.exp(worst - 2 * lam)
    evidence = (1 + lam) * eps + 3 * (max(lags) + 1) * math.exp(-lam)
    assert 4 * lam * eps <= 1
    model = selective(P, lags, beta=beta, lam=lam)
    tokens = sequences(rng, P, lags, length, count=3, random=3)
    found = max(errors(model, tokens, P, lags, mean_of_ratios(beta)))
    assert found <= beta * evidence / 2 + math.exp(beta * evidence) * eps
    assert found >= 0.01 * math.exp(-lam)


def test_the_first_row_with_all_lags_leaks_most() -> None:
    """Row max(lags) has no transition yet: its early keys keep a share of e^-lambda each."""
    rng = np.random.default_rng(3)
    lags, lam = (1, 2, 3), 8.0
    P = 0.5 * rng.dirichlet(np.ones(5), 5) + 0.1
    run = selective(P, lags, beta=1.0, lam=lam).run(sequences(rng, P, lags, 30, count=1))
    leaks = run.stream["2.1/1.1/offset"][0, 3, list(lags)]
    assert leaks.max() == pytest.approx(math.exp(-lam), rel=0.01)
