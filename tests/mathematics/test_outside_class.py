"""Lemma D: its bound at every kind of point, and each step of its proof, in floats, fractions and polynomials."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import sympy
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from mathematics import oracles_lemmas as exact
from mathematics.lemma_sides import g, h, lemma_d_sides, weighted_g
from torch import Tensor

from sih.claim.coverage import CASES

pytestmark = pytest.mark.slow

Q = Fraction
cases = pytest.mark.parametrize(("n", "beta"), CASES)
numbers = st.one_of(
    st.fractions(0, 4, max_denominator=40),
    st.sampled_from(
        [Q(0), Q(1, 2), Q(1), Q(2), Q(3), Q(1, 10**6), Q(1, 2) + Q(1, 10**6), 1 - Q(1, 10**6)]
    ),
)
rests = st.sampled_from([Q(0), Q(0), Q(1, 100), Q(1), Q(30)])


def points(
    count: int, n: int, rng: torch.Generator, spread: float = 1.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(y, z, companions, z'), many where the bound is tight: y = y_j, z + z' = 2y, y = z, y = z/2, zeros."""

    def uniform() -> Tensor:
        return torch.rand(count, generator=rng, dtype=torch.float64)

    def near(value: Tensor) -> Tensor:
        return value * torch.exp(
            10 ** (-4 * uniform()) * torch.randn(count, generator=rng, dtype=torch.float64)
        )

    def sometimes(chance: float, value: Tensor, otherwise: Tensor) -> Tensor:
        return torch.where(uniform() < chance, value, otherwise)

    scale = 10 ** (spread * (6 * uniform() - 3))
    y, z, other, t = (scale * 10 ** (4 * uniform() - 3) for _ in range(4))
    z = sometimes(0.3, near(2 * y), sometimes(0.3, near(y), z))
    other = sometimes(
        0.2, (2 * y - z).clamp_min(0), sometimes(0.15, near(3 * y), sometimes(0.15, 0 * y, other))
    )
    t = sometimes(0.3, near(y), sometimes(0.1, z / 2, sometimes(0.2, 0 * y, t)))
    y, z = sometimes(0.02, 0 * y, y), sometimes(0.02, 0 * z, z)
    each = [sometimes(0.7, t, scale * 10 ** (4 * uniform() - 3)) for _ in range(n)]
    return y, z, torch.stack(each, dim=-1) if n else y.new_zeros(count, 0), other


@cases
@pytest.mark.parametrize("rest", [0.0, 1e-3, 1.0, 1e3])
def test_the_bound(n: int, beta: int, rest: float, rng: torch.Generator) -> None:
    y, z, companions, other = points(200_000, n, rng, spread=float(rest > 0))
    left, right = lemma_d_sides(y, z, companions, other if beta else None, rest)
    size = (
        torch.cat([torch.stack([y, z, other], dim=-1), companions], dim=-1)
        .amax(dim=-1)
        .clamp_min(1e-6)
        + rest
    )
    assert ((left - right) / size).min() >= -1e-12


@pytest.mark.parametrize(("n", "beta", "y"), [(3, 1, 0.41), (4, 1, 0.41), (6, 0, 0.42)])
def test_the_bound_ends_where_the_lemma_says(n: int, beta: int, y: float) -> None:
    """One companion more and it is false, at z = 1 with all companions 0."""
    one = torch.ones(1, dtype=torch.float64)
    left, right = lemma_d_sides(
        y * one, one, torch.zeros(1, n).double(), 0 * one if beta else None, 0.0
    )
    assert (left - right).item() < -0.05


@given(
    st.sampled_from(CASES),
    numbers,
    numbers,
    st.lists(numbers, min_size=4, max_size=4),
    numbers,
    rests,
)
def test_the_bound_in_fractions(
    case: tuple[int, int],
    y: Fraction,
    z: Fraction,
    companions: list[Fraction],
    other: Fraction,
    rest: Fraction,
) -> None:
    n, beta = case
    slack = exact.lemma_d_slack(y, z, companions[:n], other if beta else None, rest)
    assert slack.high >= 0
    assert slack.low >= -Q(1, 10**40)
    own, rival, column = (torch.tensor([float(x)], dtype=torch.float64) for x in (y, z, other))
    values = torch.tensor([[float(t) for t in companions[:n]]], dtype=torch.float64)
    left, right = lemma_d_sides(own, rival, values, column if beta else None, float(rest))
    assert (left - right).item() == pytest.approx(float(slack.low), abs=1e-9)


@given(numbers, st.fractions(-1, 1, max_denominator=10**6), st.sampled_from(CASES))
def test_equality_is_not_crossed(y: Fraction, off: Fraction, case: tuple[int, int]) -> None:
    """Along the line of equality (y_j = y, z + z' = 2y) and 1e-6 beside it, in fractions."""
    assume(y > 0)
    n, beta = case
    z = y * (1 + off)
    for bend in (Q(0), Q(1, 10**6), -Q(1, 10**6)):
        slack = exact.lemma_d_slack(
            y, z, [y * (1 + bend)] * n, max(2 * y - z + bend * y, Q(0)) if beta else None
        )
        assert slack.low >= -Q(1, 10**40)


@pytest.mark.parametrize("at", [Q(0), Q(1, 2), Q(1), Q(3)])
def test_the_potentials_are_the_printed_ones(at: Fraction) -> None:
    """On a grid that is fine next to where their parts join, t = 2y and t = z/2."""
    grid = [at * Q(n, 20) + (0 if at else Q(n)) for n in range(100)]
    t = torch.tensor([float(x) for x in grid], dtype=torch.float64)
    assert h(torch.full_like(t, float(at)), t).tolist() == pytest.approx(
        [float(exact.h(at, x)) for x in grid]
    )
    assert g(torch.full_like(t, float(at)), t).tolist() == pytest.approx(
        [float(exact.g(at, x).low) for x in grid]
    )


def test_the_potentials_join() -> None:
    """h and g have the derivatives and the minimum that the proof uses."""
    z, t, y = sympy.symbols("z t y", positive=True)
    near = t - z - z * sympy.log(t / z)
    far = z * (sympy.log(2) - sympy.Rational(1, 2)) + (z / 2 - t) + 2 / z * (z / 2 - t) ** 2
    for order in range(3):
        assert (
            sympy.simplify((sympy.diff(near, t, order) - sympy.diff(far, t, order)).subs(t, z / 2))
            == 0
        )
    assert sympy.simplify(sympy.diff(far, t, 2) - 4 / z) == 0
    assert sympy.diff(near, t).subs(t, z) == near.subs(t, z) == 0
    assert sympy.expand(sympy.diff(far.subs(z, 1), t)) == 4 * t - 3
    parabola, tangent = (t - y) ** 2 / (2 * y), t - 3 * y / 2
    for order in range(2):
        assert (
            sympy.simplify(
                (sympy.diff(parabola, t, order) - sympy.diff(tangent, t, order)).subs(t, 2 * y)
            )
            == 0
        )


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10), st.sampled_from([0.0, 0.1, 2.0]))
def test_the_potentials_are_convex(at: float, left: float, right: float, m: float) -> None:
    a, t, s = (torch.tensor([x + m], dtype=torch.float64) for x in (at, left, right))
    for potential in (h, g, lambda z, x: weighted_g(z, x, m)):
        middle = potential(a, (t + s) / 2)
        assert middle.item() <= ((potential(a, t) + potential(a, s)) / 2).item() + 1e-12
        assert middle.item() >= potential(a, a).item() - 1e-12 == -1e-12


def symbols_of(n: int, beta: int) -> tuple[sympy.Expr, ...]:
    """(y, d, t, z', z, kappa, Sigma, rho) with z = y + d and every companion t."""
    y, d, t, other = sympy.symbols("y d t o", positive=True)
    kappa, z = 2 + n + beta, y + d
    total = y + z + n * t + beta * other
    return y, d, t, other, z, kappa, total, kappa * y - total


@cases
def test_expansion(n: int, beta: int) -> None:
    """(*), and what rho is."""
    y, d, t, other, _, kappa, total, rho = symbols_of(n, beta)
    u = -d
    assert sympy.expand(rho - (u + n * (y - t) + beta * (y - other))) == 0
    assert (
        sympy.simplify(
            kappa**2 * y * u / total - (kappa * u + u * rho / y + u * rho**2 / (y * total))
        )
        == 0
    )


@given(numbers, numbers, numbers, st.lists(numbers, max_size=4), st.sampled_from([0, 1]))
def test_case_i(
    y: Fraction, z: Fraction, other: Fraction, companions: list[Fraction], beta: int
) -> None:
    """(D1), and the bracket in its three forms."""
    z, y = sorted((y, z))
    assume(y > 0)
    u, v = y - z, y - other
    bracket = u * u / 2 + u * v + y * exact.h(y, other)
    assert bracket == ((u + v) ** 2 / 2 if v >= -y else (y - u) * (abs(v) - (y + u) / 2)) >= 0
    kappa = 2 + len(companions) + beta
    left = kappa**2 * y * u / (y + z + sum(companions) + beta * other)
    right = (
        kappa * u
        + beta * (exact.h(y, z) - exact.h(y, other))
        + sum((u / y) * (y - t) for t in companions)
    )
    assert y * (left - right) >= (1 - beta) * u * u + beta * bracket >= 0


@cases
def test_case_ii_identity(n: int, beta: int) -> None:
    """y I = (1-beta) d^2 + beta q^2/2 + n y B - d rho^2/Sigma, where h_y(z) = d^2/2y and z' <= y."""
    y, d, t, other, z, kappa, total, rho = symbols_of(n, beta)
    g_t, g_y = sympy.symbols("gt gy")
    v, q = y - other, y - other - d
    slack = (
        -(kappa**2) * y * d / total + kappa * d - beta * (d**2 - v**2) / (2 * y) - n * (g_y - g_t)
    )
    B = g_t - g_y - (1 - z / y) * (t - y)
    claimed = (1 - beta) * d**2 + beta * q**2 / 2 + n * y * B - d * rho**2 / total
    assert sympy.simplify(y * slack - claimed) == 0
    assert sympy.expand(rho - (-(1 - beta) * d + beta * q + n * (y - t))) == 0


halves = st.fractions(Q(1, 2), 1, max_denominator=500)
units = st.fractions(0, 1, max_denominator=500)


def curvature(y: Fraction, t: Fraction) -> exact.Between:
    """B = g(t) - g(y) - g'(y)(t - y) at z = 1, y >= 1/2."""
    one = Q(1)
    return exact.g(one, t) + exact.g(one, y).times(-one) + -(1 - 1 / y) * (t - y)


@given(halves, st.fractions(0, 5, max_denominator=500))
def test_case_ii_curvature(y: Fraction, t: Fraction) -> None:
    """w^2/yB <= 2 max(t, y)."""
    w = y - t
    assert 2 * max(t, y) * y * curvature(y, t).high >= w * w


@given(st.sampled_from(CASES), halves, units, units, st.fractions(1, 5, max_denominator=100))
def test_case_ii(
    case: tuple[int, int], y: Fraction, share: Fraction, other: Fraction, beyond: Fraction
) -> None:
    """The sufficient conditions: (CS) for t >= y and where the proof says so, Q >= 0 in the rest."""
    n, beta = case
    d = 1 - y
    t, z1 = y * beyond, other * y
    assert d * (1 + beta + 2 * n * t) <= 1 + y + n * t + beta * z1
    t = share * y
    w, q, total = y - t, y - z1 - d, 1 + y + n * t + beta * z1
    rho = -(1 - beta) * d + beta * q + n * w
    assert (1 - beta) * d * d + beta * q * q / 2 + n * w * w / (2 * y) >= d * rho * rho / total
    if beta == 0:
        bracket = (1 + y) / (2 * y) - n * d
        assert bracket >= 0 or n == 4
        difference = n * w * w * bracket + 2 * n * w * d * d + d * d * (1 + y - d)
        assert difference == (d * d + n * w * w / (2 * y)) * (1 + y) - d * (n * w - d) ** 2
        assert difference >= 0
    elif n <= 1:
        assert d * (2 + 2 * n * y) <= d * (2 + 2 * y) <= 1 + y <= total
    else:
        case_ii_three(y, w, q, rho, total)


def case_ii_three(y: Fraction, w: Fraction, q: Fraction, rho: Fraction, total: Fraction) -> None:
    """n = 2, beta = 1: each of the five regions by the argument given for it."""
    d = 1 - y
    assert total == 5 * y - rho
    assert y - 1 <= q <= 2 * y - 1
    if q <= 0 <= rho:
        assert rho**2 <= 4 * w * w
        assert total >= 1 >= 4 * y * d
    elif q <= 0:
        assert rho**2 <= q * q
        assert total >= 1 >= 2 * d
    elif w <= y / 2:
        assert total >= 1 + 2 * y >= d * (2 + 4 * y)
    elif y >= Q(65, 100):
        assert total >= 1 + y >= d * (2 + 4 * y)
    else:
        A, C = (3 * y - 1) / 2, (1 - 3 * y + 4 * y * y) / y
        assert total >= 1 + y
        form = A * q * q - 4 * d * q * w + C * w * w
        assert (q * q / 2 + w * w / y) * total - d * rho**2 >= form
        assert -4 * d * q + 2 * C * w >= 12 * y * y - 15 * y + 5 > 0
        assert 2 * A * q - 4 * d * y / 2 <= 8 * y * y - 7 * y + 1 < 0
        corner = 44 * y**3 - 59 * y**2 + 23 * y - 2
        assert (
            4 * form
            >= corner
            == 44 * (y - Q(3, 5)) ** 2 * (y - Q(31, 220)) + (29 - 35 * y) / 125
            > 0
        )


smalls = st.fractions(Q(1, 500), Q(1, 2), max_denominator=500)


def slack_below(n: int, beta: int, y: Fraction, t: Fraction, other: Fraction) -> Fraction:
    """I at z = 1 for y, t, z' <= 1/2, where no logarithm is left: g(t) - g(y) = 2t^2 - 3t - 2y^2 + 3y."""
    kappa, total = 2 + n + beta, 1 + y + n * t + beta * other
    value = kappa * (1 - y) - beta * (1 - 3 * y / 2) + beta * (other - y) ** 2 / (2 * y)
    return value + n * (2 * t * t - 3 * t - 2 * y * y + 3 * y) - kappa**2 * y * (1 - y) / total


@given(st.sampled_from(CASES), smalls, units, units)
def test_case_iii(case: tuple[int, int], y: Fraction, share: Fraction, other: Fraction) -> None:
    """The least value is at t = y or t = 0, where it is what the proof says."""
    n, beta = case
    z1 = other * y
    slack = slack_below(n, beta, y, share * y, z1)
    assert slack == pytest.approx(
        exact.lemma_d_slack(y, Q(1), [share * y] * n, z1 if beta else None).low, abs=1e-40
    )
    ends = slack_below(n, beta, y, y, z1), slack_below(n, beta, y, Q(0), z1)
    assert slack >= min(ends) >= 0
    upper, lower = (1 + (n + 1) * y + beta * z1) * ends[0], (1 + y + beta * z1) * ends[1]
    assert upper == (2 + n) * (1 - y) ** 2 if beta == 0 else upper >= (2 + n) * (1 - 2 * y) ** 2
    if n and beta == 0:
        assert lower == (n + 2) - (n * n + n + 4) * y + (n * n + 4 * n + 2) * y**2 - 2 * n * y**3
    elif n:
        assert (
            lower >= (n + 2) - (n * n + 3 * n + 8) * y + (n * n + 6 * n + 8) * y**2 - 2 * n * y**3
        )


def positive(polynomial: sympy.Expr, y: sympy.Symbol, closed: bool = True) -> bool:
    """Whether it is > 0 on [0, 1/2] (on [0, 1/2) if not closed): no root there, by exact isolation, and > 0 at 0."""
    half = sympy.Rational(1, 2)
    roots = [
        root
        for root in sympy.real_roots(sympy.Poly(polynomial, y))
        if 0 <= root < half or (closed and root == half)
    ]
    return not roots and polynomial.subs(y, 0) > 0


@pytest.mark.parametrize(("n", "beta"), [case for case in CASES if case[0]])
def test_case_iii_polynomials(n: int, beta: int) -> None:
    y = sympy.Symbol("y")
    kappa = 2 + n + beta
    slope = sympy.expand((3 - 4 * y) * (1 + (n + 1) * y) ** 2 - kappa**2 * y * (1 - y))
    printed = {
        (1, 1): (1 - 2 * y) * (3 - 2 * y + 8 * y**2),
        (2, 1): (1 - 2 * y) * (3 - 5 * y + 18 * y**2),
        (4, 0): 3 - 10 * y + 71 * y**2 - 100 * y**3,
    }
    assert (n, beta) not in printed or sympy.expand(printed[n, beta] - slope) == 0
    assert positive(slope, y, closed=False)
    if beta == 0:
        quadratic = (n + 2) - (n**2 + n + 4) * y + (n**2 + 3 * n + 2) * y**2
    else:
        quadratic = (n + 2) - (n**2 + 3 * n + 8) * y + (n**2 + 5 * n + 8) * y**2
        assert positive(n + 1 + (2 * n - 4) * y - 2 * n * y**2, y)
    assert sympy.discriminant(quadratic, y) < 0


@pytest.mark.parametrize(("n", "beta"), [case for case in CASES if case[0]])
def test_case_iv_polynomials(n: int, beta: int) -> None:
    """The table: T at both ends of the range of 1/Sigma."""
    y, s = sympy.symbols("y s")
    T = (
        4 * n * y
        - 2 * (n - 1)
        - beta
        + (2 + n + beta) ** 2 * ((1 - 2 * y) * s - y * (1 - y) * s**2)
    )
    printed = {
        (1, 0): (9 - 5 * y - 11 * y**2 + 16 * y**3, 18 - 20 * y + 7 * y**2 + 4 * y**3),
        (1, 1): ((1 - 2 * y) * (5 - 2 * y) * (3 + 4 * y), 4 * (7 - 10 * y - 5 * y**2 + 4 * y**3)),
        (2, 0): (2 * (7 - 2 * y - 25 * y**2 + 36 * y**3), 2 * (15 - 18 * y + 15 * y**2 + 4 * y**3)),
        (2, 1): (2 * (1 - 2 * y) * (11 + 17 * y - 18 * y**2), (1 - y) * (48 - 41 * y - 32 * y**2)),
        (3, 0): (21 + 5 * y - 143 * y**2 + 192 * y**3, 36 - 40 * y + 67 * y**2 + 12 * y**3),
        (4, 0): (30 + 28 * y - 314 * y**2 + 400 * y**3, 30 - 20 * y + 118 * y**2 + 16 * y**3),
    }[n, beta]
    for total, polynomial in zip((1 + (n + 1) * y, 1 + n + (1 + beta) * y), printed, strict=True):
        assert sympy.simplify(T.subs(s, 1 / total) * total**2 - polynomial) == 0
        assert positive(polynomial, y, closed=False)


@given(st.sampled_from([case for case in CASES if case[0]]), smalls, st.fractions(0, 1), units)
def test_case_iv(case: tuple[int, int], y: Fraction, share: Fraction, other: Fraction) -> None:
    """I does not increase in y: at y and a little above it, t and z' fixed."""
    n, beta = case
    t, z1 = y + share * (1 - y), other * y
    more = min(t, Q(1, 2), y + Q(1, 1000))
    slacks = [exact.lemma_d_slack(x, Q(1), [t] * n, z1 if beta else None) for x in (y, more)]
    assert slacks[0].high >= slacks[1].low


@given(st.floats(1e-6, 1 - 1e-6))
def test_what_a_rest_costs(x: float) -> None:
    """3 phi >= 2 g_1, and the two lower bounds on phi that show it."""
    phi = 1 + x * math.log(x) / (1 - x)
    g_1 = float(exact.g(Q(1), Q(x)).low)
    assert phi >= max(1 - math.sqrt(x), (1 - x) / 2) - 1e-9
    assert 3 * (1 - math.sqrt(x) if x <= 0.5 else (1 - x) / 2) > 2 * g_1
    assert all(3 * n <= 2 * (2 + n + beta) for n, beta in CASES)


@given(numbers, numbers, st.sampled_from([Q(1, 10), Q(1), Q(20)]))
def test_the_rest_exactly(y: Fraction, z: Fraction, m: Fraction) -> None:
    """xi(y)(y-z) = A(y)-A(z) + delta z phi(y/z), for y < z."""
    y, z = sorted((y + m, z + m))
    assume(y < z)
    x, delta = y / z, m / y - m / z
    phi = exact.log(1 / x).times(-x / (1 - x)) + Q(1)
    exactly = exact.log(y / z).times(-m) + (y - z)
    off = phi.times(delta * z) + exactly + -(1 - m / y) * (y - z)
    assert abs(off.low) < Q(1, 10**40)
