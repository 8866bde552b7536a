"""The normalised gap against enumeration; the search finds what is false and not what is true."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles, oracles_claim
from torch import Tensor

import sih
from sih.claim.falsifier import (
    LEAST_NORMALISER,
    Descents,
    SearchedClaim,
    descend,
    evaluate,
    normalised_gaps,
    stationary_by_solving,
)
from sih.claim.laplace import reciprocal_rule

RULE = reciprocal_rule(1e-12, 5.0, 1e-12)


def enumerated_ratio(
    P: Tensor, start: list[float], statement: SearchedClaim, rival: int
) -> tuple[float, float]:
    rows, lags, k = P.tolist(), list(statement.lags), statement.true_lag
    favoured = statement.favoured or k
    values = oracles_claim.expectations(rows, start, lags, k)
    gap = values[lags.index(favoured)] - values[lags.index(rival)]
    return gap, gap / oracles_claim.normaliser(rows, start, lags, k, favoured, rival)


@pytest.mark.parametrize(
    "statement",
    [
        SearchedClaim((1, 2, 3), 1),
        SearchedClaim((1, 2, 4), 2),
        SearchedClaim((2, 3, 5), 5),
        SearchedClaim((1, 2, 3), 1, favoured=3),
        SearchedClaim((1, 2, 4), 2, favoured=1),
        SearchedClaim((1, 2, 4), 1, stationary=False),
        SearchedClaim((2, 3, 5), 2, stationary=False),
    ],
)
def test_gap_and_ratio_equal_enumeration(statement: SearchedClaim, rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(3, rng=rng, concentration=0.5)
    start = torch.softmax(torch.randn(3, generator=rng, dtype=torch.float64), dim=-1)
    if statement.stationary:
        start = sih.stationary_distribution(P)
    found = normalised_gaps(P[None], statement, start[None], RULE)
    for j, rival in enumerate(statement.rivals):
        gap, ratio = enumerated_ratio(P, start.tolist(), statement, rival)
        assert found.gap[0, j].item() == pytest.approx(gap, abs=1e-11)
        assert found.ratio[0, j].item() == pytest.approx(ratio, rel=1e-9)


@given(st.integers(2, 6), st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9))
def test_two_lags_have_a_ratio_of_one_half(states: int, seed: int, first: int, apart: int) -> None:
    P = sih.random_transition_matrix(
        states, rng=torch.Generator().manual_seed(seed), concentration=0.3
    )
    lags = (first, first + apart)
    for k in lags:
        gaps = normalised_gaps(
            P[None], SearchedClaim(lags, k), sih.stationary_distribution(P)[None], RULE
        )
        assert gaps.gap.item() == pytest.approx(0.5 * gaps.normaliser.item(), abs=1e-11)


def test_gradient(rng: torch.Generator) -> None:
    logits = torch.randn(2, 3, 3, generator=rng, dtype=torch.float64, requires_grad=True)
    rule = reciprocal_rule(1e-4, 3.0, 1e-3)

    def ratio(x: Tensor) -> Tensor:
        P = x.softmax(dim=-1)
        return normalised_gaps(P, SearchedClaim((1, 2, 4), 1), stationary_by_solving(P), rule).ratio

    assert torch.autograd.gradcheck(ratio, (logits,))


def test_stationary_by_solving(rng: torch.Generator) -> None:
    P = torch.stack([sih.random_transition_matrix(5, rng=rng) for _ in range(4)])
    torch.testing.assert_close(
        stationary_by_solving(P), sih.stationary_distribution(P), rtol=0, atol=1e-13
    )


def assert_true_violation(found: Descents) -> None:
    """Enumerated in exact rational arithmetic, from the floats of the matrix and of the start it ended in."""
    assert found.violations
    P = oracles_claim.as_fractions(found.P[0].tolist())
    start = (
        oracles.stationary(P)
        if found.claim.stationary
        else oracles_claim.as_fractions([found.start[0].tolist()])[0]
    )
    lags = list(found.claim.lags)
    values = oracles_claim.expectations(P, start, lags, found.claim.true_lag)
    favoured = lags.index(found.claim.favoured or found.claim.true_lag)
    gap = values[favoured] - values[lags.index(int(found.rival[0]))]
    assert gap < 0
    assert float(gap) == pytest.approx(found.gap[0].item(), abs=1e-11)


def test_finds_that_a_wrong_lag_is_not_the_best(rng: torch.Generator) -> None:
    assert_true_violation(
        descend(SearchedClaim((1, 2, 3), 1, favoured=2), 3, starts=4, steps=10, rng=rng)
    )


def test_finds_that_the_claim_needs_a_stationary_start(rng: torch.Generator) -> None:
    assert_true_violation(
        descend(SearchedClaim((1, 2, 4), 2, stationary=False), 3, starts=48, steps=80, rng=rng)
    )


def test_a_descent_descends_and_does_not_break_what_is_proven(rng: torch.Generator) -> None:
    statement = SearchedClaim((1, 2, 3), 1)
    before = descend(statement, 2, starts=8, steps=1, rng=torch.Generator().manual_seed(3))
    after = descend(statement, 2, starts=8, steps=60, rng=torch.Generator().manual_seed(3))
    assert after.ratio.mean() < before.ratio.mean() - 0.01
    assert after.ratio.min() >= 1 / 3 - 1e-9  # two states: never below 1/K (lemmas)
    assert not after.violations


def test_same_seed_same_descents() -> None:
    first, second = (
        descend(
            SearchedClaim((1, 2, 3), 2), 3, starts=3, steps=5, rng=torch.Generator().manual_seed(7)
        )
        for _ in range(2)
    )
    assert torch.equal(first.P, second.P)
    assert torch.equal(first.ratio, second.ratio)


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_evaluation_sorts_and_leaves_out_what_has_no_digits(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    P = torch.stack([sih.random_transition_matrix(3, rng=rng) for _ in range(5)])
    P[2] = P[2].mean(dim=0, keepdim=True)  # equal rows: gap and normaliser are 0
    found = evaluate(SearchedClaim((1, 2, 3), 1), P)
    assert found.ratio.isposinf().sum() == 1
    assert torch.equal(found.ratio, found.ratio.sort().values)
    assert LEAST_NORMALISER > 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SearchedClaim((3,), 3), "at least 2 lags"),
        (lambda: SearchedClaim((1, 2), 3), "lag 3 is not one of"),
        (lambda: SearchedClaim((1, 2), 1, favoured=5), "lag 5 is not one of"),
        (lambda: SearchedClaim((2, 1), 1), "increasing"),
        (
            lambda: descend(SearchedClaim((1, 2), 1), 1, starts=1, steps=1, rng=torch.Generator()),
            "at least 2 states",
        ),
    ],
)
def test_bad_input(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ValueError, match=message):
        make()
