"""Exact expectations of Claim 1 against enumeration of every window."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles, oracles_claim
from torch import Tensor

import sih
from sih.claim.exact import ClaimTable, chains, claim_expectations, claim_table


def enumerated(P: Tensor, lags: tuple[int, ...]) -> Tensor:
    rows = P.tolist()
    pi = [float(x) for x in oracles.stationary(oracles_claim.as_fractions(rows))]
    table = [oracles_claim.expectations(rows, pi, list(lags), k) for k in lags]
    return torch.tensor(table, dtype=torch.float64)


def tiny(num_states: int, small: float) -> Tensor:
    """A cycle that leaves its course with probability `small` for each other state."""
    P = torch.full((num_states, num_states), small, dtype=torch.float64)
    for i in range(num_states):
        P[i, (i + 1) % num_states] = 1 - (num_states - 1) * small
    return P


RNG = torch.Generator().manual_seed(5)
CASES = {
    "dirichlet": sih.random_transition_matrix(3, rng=RNG),
    "nearly deterministic": sih.random_transition_matrix(3, rng=RNG, concentration=0.05),
    "nearly periodic": sih.random_near_periodic(4, rng=RNG, period=2, noise=1e-6),
    "sparse": sih.random_sparse(4, rng=RNG, nonzero=2),
    "one way round": sih.random_sparse(4, rng=RNG, nonzero=1),
    "symmetric": sih.as_transition_matrix([[0.5, 0.3, 0.2], [0.3, 0.1, 0.6], [0.2, 0.6, 0.2]]),
    "entries of 1e-12": tiny(3, 1e-12),
    "entries of 1e-200": tiny(3, 1e-200),
    "equal rows": torch.tensor([[0.2, 0.3, 0.5]] * 3, dtype=torch.float64),
}


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3, 4), (2, 4, 5), (2, 3), (4,)])
@pytest.mark.parametrize("case", CASES)
def test_equals_enumeration(case: str, lags: tuple[int, ...]) -> None:
    table = claim_table(CASES[case], lags)
    difference = (table.expectations - enumerated(CASES[case], lags)).abs().max()
    assert difference <= min(table.error, 1e-10)


@settings(max_examples=25)
@given(
    st.integers(2, 3),
    st.sets(st.integers(1, 6), min_size=2, max_size=5),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.03, 0.3, 1.0, 10.0]),
)
def test_equals_enumeration_for_any_lags(
    states: int, lag_set: set[int], seed: int, concentration: float
) -> None:
    rng = torch.Generator().manual_seed(seed)
    P = sih.random_transition_matrix(states, rng=rng, concentration=concentration)
    lags = tuple(sorted(lag_set))
    table = claim_table(P, lags)
    assert (table.expectations - enumerated(P, lags)).abs().max() <= min(table.error, 1e-10)


@pytest.mark.parametrize("lags", [(1, 50, 100), (7, 14, 33, 91), (25, 50, 75, 100), (2, 4, 6, 100)])
def test_far_lags(lags: tuple[int, ...]) -> None:
    P = sih.random_near_periodic(3, rng=torch.Generator().manual_seed(2), period=3, noise=0.01)
    pi = sih.stationary_distribution(P)
    expected = [oracles_claim.far_expectations(P.numpy(), pi.numpy(), list(lags), k) for k in lags]
    difference = claim_expectations(P, lags) - torch.tensor(expected, dtype=torch.float64)
    assert difference.abs().max() <= 1e-10


def test_fifty_states_and_sixteen_lags(rng: torch.Generator) -> None:
    lags = (1, 2, 3, 4, 6, 8, 10, 12, 20, 24, 40, 48, 50, 60, 96, 100)
    table = claim_table(sih.random_transition_matrix(50, rng=rng), lags)
    assert table.error < 1e-11
    assert (table.expectations.sum(dim=-1) - 1).abs().max() < table.error
    assert table.holds


@pytest.mark.parametrize("coarse", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("case", CASES)
def test_two_levels_differ_by_no_more_than_the_stated_error(case: str, coarse: float) -> None:
    lags = (1, 2, 3, 5, 6)
    rough, fine = (claim_table(CASES[case], lags, tolerance=t) for t in (coarse, 1e-13))
    assert rough.error <= 2 * coarse
    assert (rough.expectations - fine.expectations).abs().max() <= rough.error + fine.error


def test_the_stated_error_is_not_idle() -> None:
    rough, fine = (claim_table(CASES["dirichlet"], (1, 2, 3), tolerance=t) for t in (1e-3, 1e-13))
    assert (rough.expectations - fine.expectations).abs().max() > 1e-3 * rough.error


def test_a_batch_is_its_matrices(rng: torch.Generator) -> None:
    P = torch.stack([sih.random_transition_matrix(4, rng=rng) for _ in range(6)]).reshape(
        2, 3, 4, 4
    )
    together = claim_expectations(P, (1, 2, 5))
    assert together.shape == (2, 3, 3, 3)
    for i in range(2):
        for j in range(3):
            torch.testing.assert_close(
                together[i, j], claim_expectations(P[i, j], (1, 2, 5)), rtol=0, atol=1e-12
            )


def test_chunks_do_not_show(rng: torch.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    P = torch.stack([sih.random_transition_matrix(3, rng=rng) for _ in range(5)])
    whole = claim_expectations(P, (1, 2))
    monkeypatch.setattr("sih.claim.exact.CHUNK", 1)
    torch.testing.assert_close(claim_expectations(P, (1, 2)), whole, rtol=0, atol=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_naming_the_states_otherwise_changes_nothing(seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    P = sih.random_transition_matrix(4, rng=rng, concentration=0.3)
    order = torch.randperm(4, generator=rng)
    other = claim_expectations(P[order][:, order], (1, 2, 4))
    torch.testing.assert_close(other, claim_expectations(P, (1, 2, 4)), rtol=0, atol=1e-12)


def test_scaling_all_lags_changes_nothing(rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(4, rng=rng)
    torch.testing.assert_close(
        claim_expectations(P, (2, 4, 6)), claim_expectations(P, (1, 2, 3)), rtol=0, atol=1e-13
    )


def test_gaps_and_margins() -> None:
    table = ClaimTable(
        (1, 2, 5),
        torch.tensor([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25], [0.1, 0.2, 0.7]]).double(),
        1e-12,
    )
    torch.testing.assert_close(table.margins, torch.tensor([0.2, -0.05, 0.5], dtype=torch.float64))
    assert table.gaps[0, 2].item() == pytest.approx(0.3)
    assert not table.holds


def test_one_lag_is_certain(rng: torch.Generator) -> None:
    assert claim_expectations(
        sih.random_transition_matrix(3, rng=rng), (4,)
    ).item() == pytest.approx(1.0, abs=1e-12)


def test_chains_of_the_paper_set() -> None:
    found = chains((1, 2, 7, 9, 10, 11, 13, 15, 16, 22, 26, 28), 7)
    assert found[0].lags == (28, 7)
    assert found[0].steps[1:] == (3,)
    assert {c.lags for c in found[1:]} == {(22, 15, 1), (16, 9, 2), (10,), (11,), (26,), (13,)}


@pytest.mark.parametrize(
    ("P", "lags", "message"),
    [
        (torch.ones(3, 4, dtype=torch.float64), (1, 2), "square"),
        (torch.tensor([[0.5, 0.6], [0.5, 0.5]]), (1, 2), "sums to 1.1"),
        (torch.tensor([[1.5, -0.5], [0.5, 0.5]]), (1, 2), "negative"),
        (torch.eye(2), (1, 2), "irreducible"),
        (torch.tensor([[0.0, 1.0], [1.0, 0.0]]), (1, 2), "aperiodic"),
        (torch.full((2, 2), 0.5), (2, 1), "increasing"),
        (torch.full((2, 2), torch.nan), (1, 2), "finite"),
    ],
)
def test_bad_input(P: Tensor, lags: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        claim_expectations(P, lags)


def test_lists_keep_all_their_digits() -> None:
    rows = [[0.9, 0.1], [0.3, 0.7]]
    exact = claim_expectations(torch.tensor(rows, dtype=torch.float64), (1, 2))
    assert torch.equal(claim_expectations(rows, (1, 2)), exact)


def test_bad_tolerance(rng: torch.Generator) -> None:
    with pytest.raises(ValueError, match="between 1e-13 and"):
        claim_expectations(sih.random_transition_matrix(3, rng=rng), (1, 2), tolerance=1e-20)
