from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import oracles

import sih
from sih.task.matrices import RANDOM, check_ergodic

KINDS: dict[str, Callable[..., torch.Tensor]] = {
    "dirichlet": sih.random_transition_matrix,
    "uniform": sih.random_uniform,
    "doubly stochastic": sih.random_doubly_stochastic,
    "sparse": sih.random_sparse,
    "near periodic": sih.random_near_periodic,
}


@pytest.mark.parametrize("kind", KINDS)
@given(num_states=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_random_matrices_are_transition_matrices(kind: str, num_states: int, seed: int) -> None:
    P = KINDS[kind](num_states, rng=torch.Generator().manual_seed(seed))
    assert P.dtype == torch.float64
    assert P.shape == (num_states, num_states)
    assert (P >= 0).all()
    assert (P.sum(dim=1) - 1).abs().max() < 1e-14
    check_ergodic(P)
    assert torch.equal(P, KINDS[kind](num_states, rng=torch.Generator().manual_seed(seed)))


def test_uniform_rows_are_uniform_numbers_divided_by_their_sums() -> None:
    P = sih.random_uniform(5, rng=11)
    numbers = torch.rand(
        5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(11)
    ).tolist()
    for row, drawn in zip(P.tolist(), numbers, strict=True):
        assert row == pytest.approx([number / math.fsum(drawn) for number in drawn], rel=1e-15)


def test_uniform_matrices_have_the_moments_of_their_law() -> None:
    """Of two states, P_00 = U / (U + V) has mean 1/2 and second moment 1 - log 2 = E[(1 + R)^-2], R = V / U."""
    first = torch.tensor([sih.random_uniform(2, rng=seed)[0, 0] for seed in range(20_000)])
    assert first.mean().item() == pytest.approx(0.5, abs=0.006)  # 4 standard errors
    assert first.square().mean().item() == pytest.approx(1 - math.log(2), abs=0.006)


@pytest.mark.parametrize("law", RANDOM)
def test_a_law_by_its_name_is_its_own_function(law: str) -> None:
    own: dict[str, Callable[..., torch.Tensor]]
    own = {"dirichlet": sih.random_transition_matrix, "uniform": sih.random_uniform}
    own |= {"doubly-stochastic": sih.random_doubly_stochastic, "sparse": sih.random_sparse}
    own["near-periodic"] = sih.random_near_periodic
    assert torch.equal(sih.random_transition_matrix(4, rng=3, law=law), own[law](4, rng=3))
    if law != "uniform":
        drawn = sih.random_transition_matrix(4, rng=3, law=law, concentration=0.5)
        assert torch.equal(drawn, own[law](4, rng=3, concentration=0.5))


def test_doubly_stochastic_columns_sum_to_one(rng: torch.Generator) -> None:
    P = sih.random_doubly_stochastic(7, rng=rng, concentration=0.3)
    assert (P.sum(dim=0) - 1).abs().max() < 1e-12
    assert (sih.stationary_distribution(P) - 1 / 7).abs().max() < 1e-12


@pytest.mark.parametrize(("nonzero", "expected"), [(1, 1), (2, 2), (4, 4)])
def test_sparse_has_as_many_successors_as_asked(
    rng: torch.Generator, nonzero: int, expected: int
) -> None:
    counts = (sih.random_sparse(8, rng=rng, nonzero=nonzero) > 0).sum(dim=1)
    assert (counts == expected).sum() >= 7
    assert counts.max() <= max(expected, 2)  # the state with the self-loop


def test_near_periodic_mostly_goes_round(rng: torch.Generator) -> None:
    P = sih.random_near_periodic(6, rng=rng, period=3, noise=0.01)
    group = torch.arange(6) % 3
    onward = group[None, :] == (group[:, None] + 1) % 3
    assert (P * onward).sum(dim=1).min() >= 0.99


@pytest.mark.parametrize("concentration", [0.05, 0.1, 1.0, 10.0, 1e4])
def test_concentration_sets_the_spread_of_rows(rng: torch.Generator, concentration: float) -> None:
    P = sih.random_transition_matrix(30, rng=rng, concentration=concentration)
    # An entry of a symmetric Dirichlet row over n states has variance (1/n)(1 - 1/n) / (n a + 1).
    expected = (1 / 30) * (29 / 30) / (30 * concentration + 1)
    assert P.var().item() == pytest.approx(expected, rel=0.25)


@given(num_states=st.integers(2, 6), seed=st.integers(0, 2**32 - 1))
def test_stationary_law_against_exact_rationals(num_states: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    whole = draw.integers(0, 50, (num_states, num_states)) + np.eye(num_states, k=1, dtype=int) + 1
    P = [[Fraction(int(x), int(row.sum())) for x in row] for row in whole]
    expected = torch.tensor([float(x) for x in oracles.stationary(P)], dtype=torch.float64)
    given_P = torch.tensor([[float(x) for x in row] for row in P], dtype=torch.float64)
    assert (sih.stationary_distribution(given_P) - expected).abs().max() < 1e-13


@pytest.mark.parametrize("leak", [1e-3, 1e-8, 1e-13])
def test_stationary_law_of_a_slowly_mixing_chain(leak: float) -> None:
    # Two pairs of states joined by transitions of probability ~leak: mixing takes about 1/leak steps.
    P = [
        [0.5, 0.5 - leak, leak, 0.0],
        [0.3, 0.7, 0.0, 0.0],
        [0.0, 0.0, 0.2, 0.8],
        [0.0, 3 * leak, 0.6, 0.4 - 3 * leak],
    ]
    exact_P = [[Fraction(x) for x in row] for row in P]
    for i, row in enumerate(
        exact_P
    ):  # the diagonal takes up what rounding left, so that the rational rows sum to 1
        row[i] = 1 - sum((x for j, x in enumerate(row) if j != i), Fraction(0))
    expected = torch.tensor([float(x) for x in oracles.stationary(exact_P)], dtype=torch.float64)
    assert (
        sih.stationary_distribution(torch.tensor(P, dtype=torch.float64)) - expected
    ).abs().max() < 1e-12


def test_stationary_law_of_a_batch_and_of_many_states(rng: torch.Generator) -> None:
    batch = torch.stack([sih.random_transition_matrix(4, rng=rng) for _ in range(3)])
    together = sih.stationary_distribution(batch)
    assert torch.equal(together, torch.stack([sih.stationary_distribution(P) for P in batch]))
    P = sih.random_near_periodic(400, rng=rng, period=7, noise=1e-4)
    pi = sih.stationary_distribution(P)
    assert (pi @ P - pi).abs().max() < 1e-15
    assert pi.sum().item() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5]], r"square.*got shape \(1, 2\)"),
        ([[1.0]], "at least 2 states"),
        ([0.5, 0.5], "square"),
        ([[0.5, 0.5], [1.0]], "square table"),
        ("nonsense", "square table"),
        ([[0.5, float("nan")], [1.0, 0.0]], r"finite numbers; entry \(0, 1\) is nan"),
        ([[1.5, -0.5], [0.5, 0.5]], r"not negative; entry \(0, 1\) is -0.5"),
        ([[0.5, 0.4], [0.5, 0.5]], "row 0 sums to 0.9"),
        (
            [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]],
            "irreducible: state 0 never reaches state 2",
        ),
        ([[1.0, 0.0], [0.5, 0.5]], "irreducible: state 0 never reaches state 1"),
        ([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]], "never reached from states 1, 2"),
        ([[0.0, 1.0], [1.0, 0.0]], "aperiodic: it has period 2, going round state 0, then state 1"),
        ([[0, 1, 0], [0, 0, 1], [1, 0, 0]], "period 3"),
        (
            [[0, 0.5, 0.5, 0], [0.5, 0, 0, 0.5], [0.5, 0, 0, 0.5], [0, 0.5, 0.5, 0]],
            "states 0, 3, then states 1, 2",
        ),
    ],
)
def test_bad_matrices_are_refused_with_the_reason(matrix: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sih.as_transition_matrix(matrix)  # type: ignore[arg-type]  # wrong on purpose


def test_rows_are_mended_to_the_last_digit() -> None:
    P = sih.as_transition_matrix(
        torch.tensor([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3], [0.6, 0.4, 0.0]])
    )  # float32
    assert P.dtype == torch.float64
    assert (P.sum(dim=1) - 1).abs().max() < 1e-15


def test_lists_keep_all_their_digits() -> None:
    assert sih.as_transition_matrix([[0.1, 0.9], [0.7, 0.3]])[0, 0].item() == 0.1


def test_matrices_from_files(tmp_path: Path, rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(4, rng=rng)
    np.save(tmp_path / "P.npy", P.numpy())
    np.savetxt(tmp_path / "P.csv", P.numpy(), delimiter=",", fmt="%.17g")
    assert (sih.load_transition_matrix(tmp_path / "P.npy") - P).abs().max() < 1e-15
    assert (sih.load_transition_matrix(str(tmp_path / "P.csv")) - P).abs().max() < 1e-15


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("P.txt", b"1 2", r"from a \.npy or \.csv file"),
        ("P.npy", b"not numpy", "no table of numbers"),
        ("P.npy", b"", "no table of numbers"),
        ("P.csv", b"a,b\nc,d\n", "no table of numbers"),
        ("P.csv", b"0.5,0.5\n1.0\n", "no table of numbers"),
        ("P.csv", b"0.5,0.4\n1.0,0.0\n", r"P\.csv: every row.*row 0 sums to 0.9"),
        ("none.npy", None, "there is no file"),
    ],
)
def test_bad_files_are_refused(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        sih.load_transition_matrix(tmp_path / name)


def test_pickled_arrays_are_never_opened(tmp_path: Path) -> None:
    np.save(tmp_path / "P.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="no table of numbers"):
        sih.load_transition_matrix(tmp_path / "P.npy")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: sih.random_transition_matrix(1, rng=g), "at least 2 states"),
        (
            lambda g: sih.random_transition_matrix(3, rng=g, concentration=0.0),
            "concentration is a positive number",
        ),
        (
            lambda g: sih.random_transition_matrix(50, rng=g, concentration=1e-9),
            "too small for 50 states",
        ),
        (lambda g: sih.random_uniform(1, rng=g), "at least 2 states"),
        (
            lambda g: sih.random_transition_matrix(3, rng=g, law="gauss"),
            "law must be one of dirichlet, uniform, .*'gauss'",
        ),
        (
            lambda g: sih.random_transition_matrix(3, rng=g, law="uniform", concentration=0.5),
            "^the law uniform has no concentration: leave it out; got 0.5$",
        ),
        (
            lambda g: sih.random_transition_matrix(3, rng=g, law="sparse", concentration=0.0),
            "concentration is a positive",
        ),
        (lambda g: sih.random_doubly_stochastic(3, rng=g, concentration=-1.0), "positive"),
        (lambda g: sih.random_sparse(3, rng=g, nonzero=4), "1 to 3; got 4"),
        (lambda g: sih.random_near_periodic(3, rng=g, period=4), "2 to 3; got 4"),
        (lambda g: sih.random_near_periodic(3, rng=g, noise=0.0), r"in \(0, 1\]; got 0"),
    ],
)
def test_bad_requests_for_random_matrices(
    call: Callable[[torch.Generator], torch.Tensor], message: str, rng: torch.Generator
) -> None:
    with pytest.raises(ValueError, match=message):
        call(rng)
