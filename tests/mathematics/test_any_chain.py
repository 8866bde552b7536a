"""The proven cases, over random and adversarial chains."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mathematics.proven_cases import (
    are_independent,
    betweenness,
    two_lag_sides,
    two_rows_ratio,
    unnormalised_expectations,
)
from support import oracles_claim
from torch import Tensor

import sih
from sih.claim.exact import Integrand, claim_table
from sih.claim.falsifier import SearchedClaim, normalised_gaps
from sih.claim.laplace import reciprocal_rule

pytestmark = pytest.mark.slow

lag_sets = st.sets(st.integers(1, 9), min_size=2, max_size=5).map(lambda s: tuple(sorted(s)))
RULE = reciprocal_rule(1e-13, 5.0, 1e-12)


@st.composite
def matrices(draw: st.DrawFn, symmetric: bool = False) -> Tensor:
    """Random, nearly deterministic, nearly periodic or nearly reducible; entries down to 1e-9."""
    size = draw(st.integers(2, 5))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    logits = draw(st.sampled_from([0.3, 1.0, 3.0, 7.0])) * torch.randn(
        size, size, generator=rng, dtype=torch.float64
    )
    if not symmetric:
        lean = draw(st.sampled_from([0.0, 4.0, 10.0]))
        logits = (
            logits
            + lean * torch.eye(size, dtype=torch.float64)[torch.randperm(size, generator=rng)]
        )
        return torch.softmax(logits.clamp(-20, 20), dim=-1)
    weights = torch.softmax(logits.flatten(), dim=-1).reshape(size, size)
    weights = weights + weights.T
    weights = weights / weights.sum(dim=-1).max() * draw(st.sampled_from([1.0, 0.9, 0.5]))
    off = weights - torch.diag(weights.diagonal()) + 1e-9
    off.fill_diagonal_(0)
    off = off / max(1.0, off.sum(dim=-1).max().item() + 1e-9)
    return off + torch.diag(1 - off.sum(dim=-1))


laws = st.lists(st.floats(0, 1), min_size=2, max_size=8).filter(lambda x: sum(x) > 1e-3)


@given(laws, laws)
def test_lemma_one(first: list[float], second: list[float]) -> None:
    size = min(len(first), len(second))
    p, q = (torch.tensor(x[:size], dtype=torch.float64) + 1e-12 for x in (first, second))
    p, q = p / p.sum(), q / q.sum()
    left, right = two_lag_sides(p, q)
    assert left <= right + 1e-15
    half = 0.5 * ((p - q) ** 2 / (p + q)).sum()
    assert (right - left).item() == pytest.approx(half.item(), abs=1e-14)


def test_lemma_one_with_zeros() -> None:
    left, right = two_lag_sides(
        torch.tensor([1.0, 0.0, 0.0]).double(), torch.tensor([0.0, 1.0, 0.0]).double()
    )
    assert (left.item(), right.item()) == (0.0, 1.0)


@given(matrices(), lag_sets)
def test_lemma_two(P: Tensor, lags: tuple[int, ...]) -> None:
    values = unnormalised_expectations(P, lags)
    own = values.diagonal()[:, None]
    assert (own - values).min() >= -1e-14


@pytest.mark.parametrize("lags", [(1, 2, 4), (2, 3, 6)])
def test_lemma_two_equals_enumeration(lags: tuple[int, ...], rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(2, rng=rng)
    pi = sih.stationary_distribution(P).tolist()
    rows, depth = P.tolist(), max(lags)
    for j, k in enumerate(lags):
        for i, r in enumerate(lags):
            mean = sum(
                chance * rows[window[depth - k]][s] * rows[window[depth - r]][s]
                for window, chance in oracles_claim.windows(rows, pi, k, depth)
                for s in range(2)
            )
            assert unnormalised_expectations(P, lags)[j, i].item() == pytest.approx(mean, abs=1e-14)


@given(matrices(), lag_sets)
def test_independent_lags_have_half_the_normaliser(P: Tensor, lags: tuple[int, ...]) -> None:
    k = lags[-1] + lags[-1]  # beyond all others' differences
    lags = (*lags[:4], k)
    assert are_independent(lags, k)
    gaps = normalised_gaps(
        P[None], SearchedClaim(lags, k), sih.stationary_distribution(P)[None], RULE
    )
    torch.testing.assert_close(gaps.gap, 0.5 * gaps.normaliser, rtol=0, atol=1e-11)
    assert gaps.gap.min() >= -1e-11


@given(matrices(symmetric=True), lag_sets)
def test_symmetric_matrices_satisfy_the_claim(P: Tensor, lags: tuple[int, ...]) -> None:
    torch.testing.assert_close(P, P.T)
    assert claim_table(P, lags).holds


@given(matrices(symmetric=True))
def test_symmetric_matrices_exchange_the_ends_of_a_chain(P: Tensor) -> None:
    """Reversing (X_{i-3}, X_{i-2}, X_{i-1}) swaps lags 1 and 3 and nothing else."""
    gaps = normalised_gaps(
        P[None], SearchedClaim((1, 2, 3), 1), sih.stationary_distribution(P)[None], RULE
    )
    assert gaps.gap[0, 1].item() == pytest.approx(0.5 * gaps.normaliser[0, 1].item(), abs=1e-11)


def test_symmetry_does_not_exchange_other_lags() -> None:
    P = sih.as_transition_matrix([[0.7, 0.2, 0.1], [0.2, 0.2, 0.6], [0.1, 0.6, 0.3]])
    ratio = normalised_gaps(
        P[None], SearchedClaim((1, 2, 4), 1), sih.stationary_distribution(P)[None], RULE
    ).ratio
    assert (ratio - 0.5).abs().min() > 1e-3


@given(matrices(), lag_sets)
def test_random_and_adversarial_chains_satisfy_the_claim(P: Tensor, lags: tuple[int, ...]) -> None:
    assert claim_table(P, lags).holds


@given(matrices(), lag_sets, st.integers(0, 2**32 - 1))
def test_the_true_lag_is_never_below_average(P: Tensor, lags: tuple[int, ...], seed: int) -> None:
    """For any start, stationary or not."""
    start = torch.softmax(
        3 * torch.randn(len(P), generator=torch.Generator().manual_seed(seed)).double(), dim=-1
    )
    integrand = Integrand(P[None], start[None], RULE, stationary=False)
    for j, k in enumerate(lags):
        values = integrand.expectations(lags, k, weighted=k)[0]
        assert values.sum().item() == pytest.approx(1, abs=1e-11)
        assert values[j] >= 1 / len(lags) - 1e-11


@settings(max_examples=50)
@given(laws, laws, st.integers(1, 6), st.integers(1, 6))
def test_two_rows(first: list[float], second: list[float], like_true: int, others: int) -> None:
    size = min(len(first), len(second))
    a, b = (torch.tensor(x[:size], dtype=torch.float64) + 1e-3 for x in (first, second))
    a, b = a / a.sum(), b / b.sum()
    total = like_true * a + others * b
    gap, normaliser = (a * (a - b) / total).sum(), ((a - b) ** 2 / total).sum()
    ratio = two_rows_ratio(like_true + others, like_true)
    assert gap.item() == pytest.approx(ratio * normaliser.item(), abs=1e-14)
    assert ratio >= 1 / (like_true + others)


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6), lag_sets, st.integers(0, 2**32 - 1))
def test_two_states_have_a_gap_for_any_start(
    leave: float, back: float, lags: tuple[int, ...], seed: int
) -> None:
    P = torch.tensor([[1 - leave, leave], [back, 1 - back]], dtype=torch.float64)
    start = torch.rand(1, generator=torch.Generator().manual_seed(seed)).double()
    start = torch.stack([start, 1 - start], dim=-1)
    for k in lags:
        gaps = normalised_gaps(P[None], SearchedClaim(lags, k, stationary=False), start, RULE)
        assert (gaps.gap - gaps.normaliser / len(lags)).min() >= -1e-11


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 2, 4), (2, 3, 5)])
def test_betweenness_equals_enumeration(lags: tuple[int, ...], rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(3, rng=rng, concentration=0.5)
    rows, pi, depth = P.tolist(), sih.stationary_distribution(P).tolist(), max(lags)
    for k in lags:
        found = betweenness(P[None], lags, k)[0]
        expected = torch.zeros_like(found)
        for window, chance in oracles_claim.windows(rows, pi, k, depth):
            for s in range(3):
                p = [rows[window[depth - lag]][s] for lag in lags]
                own = rows[window[depth - k]][s]
                for i in range(len(lags)):
                    for j in range(len(lags)):
                        expected[i, j] += chance * (own - p[i]) * (own - p[j]) / sum(p)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@given(matrices(), lag_sets)
def test_the_gap_is_a_sum_of_betweennesses(P: Tensor, lags: tuple[int, ...]) -> None:
    table = claim_table(P, lags)
    for j, k in enumerate(lags):
        B = betweenness(P[None], lags, k)[0]
        for i in range(len(lags)):
            gap = (table.expectations[j, j] - table.expectations[j, i]).item()
            assert len(lags) * gap == pytest.approx(B[i].sum().item(), abs=1e-10)


@given(matrices(), lag_sets)
def test_no_betweenness_is_negative(P: Tensor, lags: tuple[int, ...]) -> None:
    """Not proven: what the search suggests, tried on the same chains as the claim."""
    for k in lags:
        assert betweenness(P[None], lags, k).min() >= -1e-11
