"""Exact rational enumeration: equal, to the last bit, to the sum over every window."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch
from support import oracles, oracles_claim

import sih
from sih.claim.exact import claim_expectations
from sih.claim.rational import rational_expectations, rational_stationary


@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 3, 4), (1, 4)])
def test_equals_the_sum_over_all_windows(lags: tuple[int, ...]) -> None:
    P = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5], [0.875, 0.125, 0.0]], dtype=torch.float64)
    exact = oracles_claim.as_fractions(P.tolist())
    pi = oracles.stationary(exact)
    for k in lags:
        found = rational_expectations(P, lags, k)
        assert found == oracles_claim.expectations(exact, pi, list(lags), k)
        assert sum(found) == 1
        row = claim_expectations(P, lags)[lags.index(k)].tolist()
        assert row == pytest.approx([float(x) for x in found], abs=1e-12)


def test_stationary_law_is_exact(rng: torch.Generator) -> None:
    P = oracles_claim.as_fractions(sih.random_transition_matrix(4, rng=rng).tolist())
    pi = rational_stationary(P)
    assert sum(pi) == 1
    for j in range(4):
        assert sum((pi[i] * P[i][j] for i in range(4)), Fraction(0)) == pi[j]


def test_bad_input(rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(5, rng=rng)
    with pytest.raises(ValueError, match="1953125 windows"):
        rational_expectations(P, tuple(range(1, 10)), 1)
    with pytest.raises(ValueError, match="one of the lags"):
        rational_expectations(P, (1, 2), 3)
