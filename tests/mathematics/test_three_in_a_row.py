"""The end of three lags in a row: identities, and each proven case, on random, nearly periodic and exact chains."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest
import sympy
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from mathematics.lemma_sides import ends, overlap, staying_bound
from mathematics.oracles_lemmas import stationary
from torch import Tensor

import sih
from sih.claim.exact import claim_table

pytestmark = pytest.mark.slow

Q = Fraction


@st.composite
def matrices(draw: st.DrawFn, sizes: tuple[int, ...] = (2, 3, 4, 6)) -> Tensor:
    """Random to nearly deterministic, some near a cycle, some near period 2."""
    size = draw(st.sampled_from(sizes))
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    logits = draw(st.sampled_from([0.2, 1.0, 4.0])) * torch.randn(
        size, size, generator=rng, dtype=torch.float64
    )
    kind = draw(st.sampled_from(["none", "cycle", "period 2"]))
    if kind == "cycle":
        logits = logits + draw(st.sampled_from([3.0, 8.0])) * torch.eye(size).roll(1, 1)
    if kind == "period 2":
        parity = torch.arange(size) % 2
        logits = logits + draw(st.sampled_from([3.0, 8.0])) * (parity[:, None] != parity)
    return torch.softmax(logits.clamp(-20, 20), dim=-1)


@given(matrices())
def test_identities(P: Tensor) -> None:
    """gap = (N-D)/2, and D = (M'-M)/3; the gap is that of the exact method."""
    found = ends(P)
    gaps = claim_table(P, (1, 2, 3)).gaps
    assert found.gap.item() == pytest.approx(gaps[0, 2].item(), abs=1e-11)
    assert found.D.item() == pytest.approx((found.M_older - found.M).item() / 3, abs=1e-12)
    assert ends(P, 2).gap.item() == pytest.approx(
        claim_table(P, (1, 3, 5)).gaps[0, 2].item(), abs=1e-11
    )


def test_zeros_count_for_nothing() -> None:
    P = sih.as_transition_matrix([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    assert ends(P).gap.item() == pytest.approx(
        claim_table(P, (1, 2, 3)).gaps[0, 2].item(), abs=1e-11
    )


def test_the_integrand() -> None:
    """I in its three forms, and its least value."""
    a, b, c, x = sympy.symbols("a b c x")
    total = a + b + c
    first = ((a - c) ** 2 - ((b - c) ** 2 - (b - a) ** 2) / 3) / total
    assert sympy.simplify(first - sympy.Rational(2, 3) * (a - c) * (2 * a - b - c) / total) == 0
    moved = (first * total).subs(a, b - x * (b - c))
    assert sympy.expand(moved - sympy.Rational(2, 3) * (b - c) ** 2 * (x - 1) * (2 * x - 1)) == 0
    least = sympy.Rational(3, 4)  # where (x - 1)(2x - 1) is least
    assert sympy.Rational(2, 3) * (least - 1) * (2 * least - 1) == -sympy.Rational(1, 12)


@given(matrices(sizes=(2, 3)))
def test_two_and_three_states(P: Tensor) -> None:
    for steps in (1, 2):
        found = ends(P, steps)
        assert (found.N - found.D).item() >= -1e-13


@given(matrices())
def test_minkowski(P: Tensor) -> None:
    found = ends(P)
    N, D, M, older = (x.item() for x in (found.N, found.D, found.M, found.M_older))
    assert abs(older**0.5 - M**0.5) <= N**0.5 + 1e-9
    assert D <= 0.5
    if M <= N or older <= 4 * N or N >= 0.5:
        assert D <= N + 1e-13


@given(st.integers(3, 7), st.floats(0, 0.15), st.integers(0, 2**32 - 1))
def test_near_a_long_cycle(size: int, off: float, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    noise = torch.softmax(2 * torch.randn(size, size, generator=rng, dtype=torch.float64), dim=-1)
    P = (1 - off) * torch.eye(size, dtype=torch.float64).roll(1, 1) + off * noise
    assume(off > 1e-6)
    assert (
        ends(P).N.item()
        >= 2 * (1 - off) ** 2 * (1 - 2 * off) ** 2 / (1 + 2 * off) - 1e-9
        >= 0.5 - 1e-9
    )


@given(matrices())
def test_staying(P: Tensor) -> None:
    found = ends(P)
    bound = staying_bound(P).item()
    assert (found.N - found.D).item() >= bound - 1e-12
    lazy = (
        0.08 * torch.eye(len(P), dtype=torch.float64) + 0.92 * P
    )  # every state stays with more than 1/13
    assert staying_bound(lazy).item() >= 0
    assert ends(lazy).gap.item() >= 0


def test_the_staying_bound_is_the_printed_one() -> None:
    P = sih.random_transition_matrix(4, rng=torch.Generator().manual_seed(0))
    pi, rows = sih.stationary_distribution(P).tolist(), P.tolist()
    total = 0.0
    for i, j in product(range(4), repeat=2):
        if i != j:
            distance = sum((a - b) ** 2 / (a + b) for a, b in zip(rows[i], rows[j], strict=True))
            total += (
                pi[i]
                * rows[i][j]
                * distance
                * (8 * rows[i][i] + 5 * rows[j][j] + rows[j][i] - 1)
                / 12
            )
    assert staying_bound(P).item() == pytest.approx(total, abs=1e-14)


@given(matrices(), st.sampled_from([0.228, 0.3, 0.6]))
def test_overlapping_rows(P: Tensor, theta: float) -> None:
    """Mixed so that P(x, s) >= theta pi(s): the lower bound of (3), part by part."""
    pi = sih.stationary_distribution(P)
    P = theta * pi.expand_as(P) + (1 - theta) * P
    least = min(p / law for row in P.tolist() for p, law in zip(row, pi.tolist(), strict=True))
    assert overlap(P).item() == pytest.approx(least, abs=1e-9)
    assert least >= theta - 1e-9
    R, factor = (P - theta * pi) / (1 - theta), 3 * theta / (1 + 2 * theta)
    c, b, a = P[:, None, None, :], P[None, :, None, :], P[None, None, :, :]
    total = a + b + c

    def mean(value: Tensor, first: Tensor, second: Tensor) -> float:
        weight = pi[:, None, None] * first[:, :, None] * second[None]
        return (weight[..., None] * value / total).sum().item()

    independent = pi.expand_as(P)
    V = mean((b - c) ** 2, R, R)
    I = 2 / 3 * (a - c) * (2 * a - b - c)  # noqa: E741
    assert mean(I, independent, independent) >= V / 4 - 1e-12
    assert mean(I, R, independent) + mean(I, independent, R) >= 4 / 9 * factor * V - 1e-12
    assert mean(I, R, R) >= -V / 12 - 1e-12
    found = ends(P)
    assert (found.N - found.D).item() >= V * (22 * theta**2 - 12 * theta**3 - 1) / (
        12 * (1 + 2 * theta)
    ) - 1e-12
    assert found.gap.item() >= -1e-14


@given(st.lists(st.fractions(0, 1, max_denominator=50), min_size=3, max_size=3))
def test_schur(row: list[Fraction]) -> None:
    total = sum(row)
    assume(all(row))
    a, b, c = (x / total for x in row)
    e2, e3 = a * b + b * c + c * a, a * b * c
    pairs = a * b / (a + b) + b * c / (b + c) + c * a / (c + a)
    assert (
        Q(1, 3) + Q(2, 3) * pairs - 2 * e2
        == (e2 * (1 - 4 * e2) + e3 * (1 + 6 * e2)) / (3 * (e2 - e3))
        >= 0
    )
    assert 1 - 4 * e2 + 9 * e3 >= 0


@given(
    st.lists(st.integers(1, 30), min_size=9, max_size=9),
    st.lists(st.integers(1, 30), min_size=9, max_size=9),
)
def test_three_states_step_by_step(steps: list[int], entries: list[int]) -> None:
    """In fractions, with rows that have nothing to do with the transitions: currents, corners and the bound."""
    F = [[Q(x, sum(steps[3 * i : 3 * i + 3])) for x in steps[3 * i : 3 * i + 3]] for i in range(3)]
    x = [
        [Q(v, sum(entries[3 * i : 3 * i + 3])) for v in entries[3 * i : 3 * i + 3]]
        for i in range(3)
    ]
    pi = stationary(F)

    def I(i: int, j: int, l: int) -> Fraction:  # noqa: E741, E743, N802
        rows = zip(x[l], x[j], x[i], strict=True)
        return sum((Q(2, 3) * (a - c) * (2 * a - b - c) / (a + b + c) for a, b, c in rows), Q(0))

    def weight(i: int, j: int, l: int) -> Fraction:  # noqa: E741
        return pi[i] * F[i][j] * F[j][l]

    current = pi[0] * F[0][1] - pi[1] * F[1][0]
    turn = 1 if current >= 0 else -1
    current, least = abs(current), Q(0)
    T, U = [], []
    for j in range(3):
        before, after = (j - turn) % 3, (j + turn) % 3
        assert weight(before, j, after) - weight(after, j, before) == current * (1 - F[j][j])
        assert weight(j, j, after) - weight(after, j, j) == current * F[j][j]
        assert weight(before, j, j) - weight(j, j, before) == current * F[j][j]
        T.append(I(before, j, after))
        U.append(I(j, j, after) + I(before, j, j))
        least += (1 - F[j][j]) * T[j] + F[j][j] * U[j]
    total = sum((weight(*path) * I(*path) for path in product(range(3), repeat=3)), Q(0))
    assert total >= current * least >= 0
    for corner in product((0, 1), repeat=3):
        assert sum(u if stays else t for stays, t, u in zip(corner, T, U, strict=True)) >= 0


@given(st.lists(st.integers(1, 50), min_size=10, max_size=10))
def test_reversible_chains_have_half_of_n(entries: list[int]) -> None:
    """In fractions: gap = N/2 exactly."""
    W = [[Q(0)] * 4 for _ in range(4)]
    for weight, (i, j) in zip(entries, combinations_with_replacement(range(4), 2), strict=True):
        W[i][j] = W[j][i] = Q(weight)
    P = [[w / sum(row) for w in row] for row in W]
    pi = stationary(P)
    gap = half = Q(0)
    for i, j, l, s in product(range(4), repeat=4):  # noqa: E741
        chance = pi[i] * P[i][j] * P[j][l]
        a, b, c = P[l][s], P[j][s], P[i][s]
        gap += chance * a * (a - c) / (a + b + c)
        half += chance * (a - c) ** 2 / (a + b + c) / 2
    assert gap == half
    tensor = torch.tensor([[float(x) for x in row] for row in P], dtype=torch.float64)
    assert ends(tensor).D.item() == pytest.approx(0, abs=1e-15)


def test_small_perturbations_of_independent_draws() -> None:
    """N is of second order and D of fourth: N = 2/3 e^2 |Q|^2, D = -e^4/27 times a cubic form of Q."""
    P = sih.random_transition_matrix(5, rng=torch.Generator().manual_seed(5))
    pi = sih.stationary_distribution(P)
    off = P - pi
    size = (pi[:, None] * off**2 / pi).sum()
    cubic = torch.einsum("p,pq,ps,qs,s->", pi, off, off**2, off, pi**-2)
    cubic = cubic - torch.einsum("p,pq,ps,qs,s->", pi, off, off, off**2, pi**-2)
    found = ends(pi + 1e-2 * off)
    assert (found.N / 1e-4).item() == pytest.approx((2 / 3 * size).item(), rel=0.01)
    assert (found.D / 1e-8).item() == pytest.approx((-cubic / 27).item(), rel=0.1)
