"""Error rates: moments and probabilities against the enumerated law of the lead, exponents against eigenvalues."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support import oracles_claim

import sih
from sih.claim.rates import (
    SCORES,
    Lead,
    Score,
    _log_moments,
    error_exponent,
    exponent,
    lead,
    overtaking_probabilities,
)


def gain(task: sih.Task, true_lag: int, rival: int, score: Score):  # type: ignore[no-untyped-def]
    k, r = task.lags.index(true_lag), task.lags.index(rival)
    if score == "ML":
        return lambda p: math.log(p[r] / p[k])
    return lambda p: (p[r] - p[k]) / sum(p)


def counts(task: sih.Task, score: Score, transitions: int) -> list[bool]:
    every = len(task.lags) if score == "single head" else 1
    return [(transitions - 1 - n) % every == 0 for n in range(transitions)]


@pytest.fixture
def small(rng: torch.Generator) -> sih.Task:
    return sih.Task(sih.random_transition_matrix(2, rng=rng), lags=(1, 3), length=10)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("k", "r"), [(1, 3), (3, 1)])
def test_moments_equal_those_of_the_enumerated_lead(
    small: sih.Task, score: Score, k: int, r: int
) -> None:
    pi = small.stationary.tolist()
    law = oracles_claim.lead_distribution(
        small.P.tolist(), pi, list(small.lags), k, gain(small, k, r, score), counts(small, score, 7)
    )
    theta = 0.7
    weights = {x: p * math.exp(theta * x) for x, p in law.items()}
    total = sum(weights.values())
    mean = sum(x * w for x, w in weights.items()) / total
    variance = sum(x * x * w for x, w in weights.items()) / total - mean**2
    found = _log_moments(
        lead(small, k, r, score), torch.tensor([theta], dtype=torch.float64), torch.tensor([7])
    )
    assert [x.item() for x in found] == pytest.approx((math.log(total), mean, variance), abs=1e-7)


@pytest.mark.parametrize("score", SCORES)
def test_exponent_equals_the_least_eigenvalue(rng: torch.Generator, score: Score) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=10)
    P, every = task.P.numpy(), 2 if score == "single head" else 1

    def log_root(theta: float) -> float:
        tilted, plain = np.zeros((9, 9)), np.zeros((9, 9))
        for older in range(3):
            for newer in range(3):
                for s in range(3):  # true lag 1, rival 2
                    p, q = P[newer, s], P[older, s]
                    lead_gain = math.log(q / p) if score == "ML" else (q - p) / (p + q)
                    plain[3 * older + newer, 3 * newer + s] = p
                    tilted[3 * older + newer, 3 * newer + s] = p * math.exp(theta * lead_gain)
        product = tilted @ np.linalg.matrix_power(plain, every - 1)
        return math.log(max(abs(np.linalg.eigvals(product)))) / every

    grid = np.linspace(0, 6, 1501)
    assert exponent(task, 1, 2, score) == pytest.approx(-min(map(log_root, grid)), rel=1e-5)


@pytest.mark.parametrize("score", SCORES)
def test_probability_is_near_the_enumerated_one(rng: torch.Generator, score: Score) -> None:
    task = sih.Task(
        sih.random_transition_matrix(3, rng=rng, concentration=2.0), lags=(1, 2), length=10
    )
    law = oracles_claim.lead_distribution(
        task.P.tolist(),
        task.stationary.tolist(),
        [1, 2],
        1,
        gain(task, 1, 2, score),
        counts(task, score, 12),
    )
    ahead = sum(p for x, p in law.items() if x > 1e-6)
    tied = sum(p for x, p in law.items() if abs(x) <= 1e-6)
    found = overtaking_probabilities(lead(task, 1, 2, score), [12]).item()
    assert 0.85 * ahead < found < 1.15 * (ahead + tied)


def test_ml_errs_alike_both_ways(rng: torch.Generator) -> None:
    """Chernoff's exponent does not tell which of two hypotheses is true."""
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=(1, 2, 3), length=10)
    for k, r in ((1, 2), (1, 3), (2, 3)):
        assert exponent(task, k, r, "ML") == pytest.approx(exponent(task, r, k, "ML"), rel=1e-9)


def test_ml_has_the_best_exponent_and_one_head_the_worst(rng: torch.Generator) -> None:
    for _ in range(2):
        task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2, 3), length=10)
        ml, estimator, one_head = (error_exponent(task, score) for score in SCORES)
        assert ml >= estimator - 1e-12
        assert estimator > one_head > 0


def test_impossible_transitions(rng: torch.Generator) -> None:
    """ML is out of doubt once a rival's transition is impossible: its lead can only stay behind."""
    task = sih.Task(sih.random_sparse(3, rng=rng, nonzero=2), lags=(1, 2), length=10)
    assert not (task.P > 0).all()
    for k, r in ((1, 2), (2, 1)):
        assert 0 < exponent(task, k, r, "estimator") <= exponent(task, k, r, "ML") + 1e-9 < math.inf
    law = oracles_claim.lead_distribution(
        task.P.tolist(),
        task.stationary.tolist(),
        [1, 2],
        1,
        lambda p: math.log(p[1] / p[0]) if p[1] else -math.inf,
        [True] * 14,
    )
    ahead, tied = (
        sum(p for x, p in law.items() if lo < x <= hi)
        for lo, hi in ((1e-6, math.inf), (-1e-6, 1e-6))
    )
    assert (
        0.8 * ahead
        < overtaking_probabilities(lead(task, 1, 2, "ML"), [14]).item()
        < 1.2 * (ahead + tied)
    )


def test_equal_rows_tell_nothing() -> None:
    task = sih.Task([[0.3, 0.7], [0.3, 0.7]], lags=(1, 2), length=10)
    for score in SCORES:
        assert exponent(task, 1, 2, score) == 0.0


def test_bad_input(task: sih.Task) -> None:
    with pytest.raises(ValueError, match="two of the lags"):
        lead(task, 1, 1, "ML")
    with pytest.raises(ValueError, match="at most 65536 windows"):
        lead(sih.Task(task.P, (1, 12), 20), 1, 12, "ML")


def test_a_rival_that_cannot_be_told_apart_is_picked_half_the_time() -> None:
    task = sih.Task([[0.3, 0.7], [0.3, 0.7]], lags=(1, 2), length=10)
    for score in SCORES:
        assert overtaking_probabilities(lead(task, 1, 2, score), [6]).item() == pytest.approx(
            0.5, abs=1e-12
        )


@pytest.mark.parametrize("seed", [4, 8])
def test_the_second_term_of_lugannani_and_rice(seed: int) -> None:
    """Matrices on which three times this term would be 26 % and 18 % too much; a tie counts half."""
    P = sih.random_transition_matrix(3, rng=torch.Generator().manual_seed(seed), concentration=0.5)
    task = sih.Task(P, lags=(1, 2), length=10)
    law = oracles_claim.lead_distribution(
        P.tolist(), task.stationary.tolist(), [1, 2], 1, gain(task, 1, 2, "estimator"), [True] * 10
    )
    enumerated = sum(p if x > 1e-6 else p / 2 for x, p in law.items() if x > -1e-6)
    assert overtaking_probabilities(lead(task, 1, 2, "estimator"), [10]).item() == pytest.approx(
        enumerated, rel=0.03
    )


@pytest.mark.parametrize("score", SCORES)
def test_many_lengths_at_once_are_each_alone_and_the_mirrored_lead_has_the_rest(
    score: Score,
) -> None:
    task = sih.Task(
        sih.random_transition_matrix(3, rng=torch.Generator().manual_seed(2)),
        lags=(1, 3),
        length=10,
    )
    chain, n = lead(task, 3, 1, score), [1, 30, 4, 7]
    together = overtaking_probabilities(chain, n)
    torch.testing.assert_close(
        together, torch.cat([overtaking_probabilities(chain, [m]) for m in n])
    )
    torch.testing.assert_close(
        overtaking_probabilities(replace(chain, gain=-chain.gain), n), 1 - together
    )


@pytest.mark.parametrize("transitions", [[], [0], [5, -1]])
def test_transitions_are_counted_from_one(transitions: list[int]) -> None:
    task = sih.Task(
        sih.random_transition_matrix(3, rng=torch.Generator().manual_seed(2)),
        lags=(1, 2),
        length=10,
    )
    with pytest.raises(ValueError, match=r"numbers of 1 or more; got .*; try \[10, 20\]"):
        overtaking_probabilities(lead(task, 1, 2, "ML"), transitions)


def test_a_lead_that_is_never_past_zero_is_caught_only_by_ties() -> None:
    """The rival loses at a 1 and stands still at a 0: it has not lost after n transitions with probability .4 ** n."""
    law, start = torch.tensor([[0.4, 0.6]]).double().expand(4, 2), torch.full((4,), 0.25).double()
    behind = Lead(law, torch.tensor([[0.0, -1.0]]).double().expand(4, 2), start, every=1)
    powers = torch.tensor([0.4, 0.4**3]).double()
    torch.testing.assert_close(overtaking_probabilities(behind, [1, 3]), powers)
    torch.testing.assert_close(
        overtaking_probabilities(replace(behind, gain=-behind.gain), [1, 3]), 1 - powers
    )
