"""Lemma M: each step of its proof in fractions, and the lemma on couplings made to break it."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st
from mathematics.lemma_sides import lemma_m_ends

pytestmark = pytest.mark.slow

Q = Fraction
values = st.one_of(
    st.fractions(0, 4, max_denominator=60),
    st.sampled_from([Q(0), Q(1), Q(1, 10**6), 1 - Q(1, 10**4), Q(100)]),
)
rests = st.one_of(st.just(Q(0)), st.fractions(0, 20, max_denominator=20))


def ends(z: Fraction, companion: Fraction, rest: Fraction) -> tuple[Fraction, Fraction]:
    """E and B as printed."""
    kappa = 4 + rest
    b, c, W = z - 1, companion - 1, z + 2 * companion + rest
    E = b * (b + 2 * c) / (1 + W) + b * b / (4 * (kappa + b)) + c * c / (kappa + c)
    return E, kappa * (W + z) * min(W, kappa - 1) / (1 + W) ** 2


@given(values, values, rests)
def test_both_ends(z: Fraction, companion: Fraction, rest: Fraction) -> None:
    E, B = ends(z, companion, rest)
    other = (1 - 1 / (4 + rest)) * E + B - Q(5, 4)
    assert E >= 0
    assert other > 0
    own, others = (torch.tensor([float(x)], dtype=torch.float64) for x in (z, companion))
    found = lemma_m_ends(own, others, float(rest))
    assert [x.item() for x in found] == pytest.approx([float(E), float(other)], abs=1e-12)


@pytest.mark.parametrize("rest", [0.0, 0.1, 1.0, 10.0, 1e3])
def test_both_ends_on_a_grid(rest: float) -> None:
    grid = torch.cat([torch.linspace(0, 3, 301), torch.logspace(0.5, 5, 200)]).double()
    size = len(grid)
    E, other = lemma_m_ends(grid[:, None].expand(size, size), grid.expand(size, size), rest)
    assert E.min() >= -1e-15
    assert other.min() > 0.4


@given(values, values, values, values, rests)
def test_averaging_over_y(
    y: Fraction, z: Fraction, z1: Fraction, z2: Fraction, rest: Fraction
) -> None:
    """The tangent with its remainder, and the remainder's bound."""
    W, omega = z + z1 + z2 + rest, 3 + rest
    if y + W == 0:
        return
    slope = 1 - W * (W + z) / (1 + W) ** 2
    remainder = W * (W + z) * (y - 1) ** 2 / ((1 + W) ** 2 * (y + W))
    assert y * (y - z) / (y + W) == (1 - z) / (1 + W) + slope * (y - 1) + remainder
    assert remainder >= (W + z) * min(W, omega) * (y - 1) ** 2 / ((1 + W) ** 2 * (y + omega))
    assert (y - 1) ** 2 / (y + omega) <= y + 1 / omega


@given(values, values, rests)
def test_terms_of_mean_zero(z: Fraction, companion: Fraction, rest: Fraction) -> None:
    kappa = 4 + rest
    b, c = z - 1, companion - 1
    S = kappa + b + 2 * c
    assert z + 2 * companion + rest + 1 == S
    assert -(kappa**2) * b / S + kappa * b == kappa * b * (b + 2 * c) / S


@given(values, values, rests)
def test_h_is_convex(t: Fraction, u: Fraction, rest: Fraction) -> None:
    def h(x: Fraction) -> Fraction:
        return (4 + rest) / 2 * (x - 1) ** 2 / (x + 3 + rest)

    c, kappa = (t + u) / 2 - 1, 4 + rest
    assert h(t) + h(u) >= 2 * h((t + u) / 2) == kappa * c * c / (kappa + c)


def test_polynomials() -> None:
    W, x, t, u, k = sympy.symbols("W x t u kappa", positive=True)
    half, five = sympy.Rational(3, 4), sympy.Rational(5, 4)

    def cleared(z: sympy.Expr) -> sympy.Expr:
        return half * (1 - z) * (3 - W) * (1 + W) + 4 * (W + z) * W - five * (1 + W) ** 2

    assert sympy.expand(cleared(0) - (1 - W + 2 * W**2)) == 0
    assert sympy.expand(cleared(W) - (4 - 13 * W + 18 * W**2 + 3 * W**3) / 4) == 0
    assert sympy.expand(cleared(1) - (1 + W) * (11 * W - 5) / 4) == 0
    for quadratic in (1 - W + 2 * W**2, 4 - 13 * W + 18 * W**2, 27 * W**2 - 14 * W + 3):
        assert sympy.discriminant(quadratic, W) < 0
    assert sympy.expand(24 * (x**2 + (1 - x) ** 2 / 8 - x / 3) - (27 * x**2 - 14 * x + 3)) == 0
    last = half * ((u + 1) ** 2 / (6 * u + 2) - u / (u + 4)) + 12 * (u + 3) / (u + 4) ** 2 - five
    printed = (3 * t**4 + 30 * t**3 + 131 * t**2 + 872 * t + 2720) / 4
    assert sympy.simplify((last * (6 * u + 2) * (u + 4) ** 2).subs(u, 4 + t) - printed) == 0
    grows = sympy.diff(k * (k - 1) * (k + u - 1) / (k + u) ** 2, k)
    numerator = sympy.Poly(sympy.numer(sympy.together(grows)).subs(k, 4 + t), t, u)
    assert min(numerator.coeffs()) > 0


@given(
    st.fractions(4, 40, max_denominator=20),
    st.fractions(0, 1),
    st.fractions(0, 5, max_denominator=50),
)
def test_large_windows(kappa: Fraction, over: Fraction, more: Fraction) -> None:
    """u <= kappa: B suffices. u >= kappa: the bound falls with c."""
    u = over * kappa
    assert kappa * (kappa - 1) * (kappa + u - 1) / (kappa + u) ** 2 >= Q(21, 16)
    u = kappa * (1 + more)

    def bound(c: Fraction) -> Fraction:
        b = u - 2 * c
        E = b * u / (kappa + u) + c * c / (kappa + c)
        return (1 - 1 / kappa) * E + kappa * (kappa - 1) * (kappa + u + b) / (kappa + u) ** 2

    points = [-1 + (u + 3) / 2 * Q(n, 8) for n in range(9)]  # up to b = -1
    assert all(bound(later) < bound(sooner) for sooner, later in pairwise(points))
    assert bound(points[-1]) > Q(5, 4)


@given(st.integers(0, 2**32), rests, st.sampled_from([2, 3, 4]))
def test_the_lemma(seed: int, rest: Fraction, size: int) -> None:
    """Any coupling of three with equal marginals: a mixture of permutations, the one of least gap kept as it goes."""
    rng = random.Random(seed)
    x = sorted(Q(rng.choice((0, rng.randint(1, 4), rng.randint(1, 100)))) for _ in range(size))

    def gap(first: list[int], second: list[int]) -> Fraction:
        total = Q(0)
        for y in x:
            for i, z in enumerate(x):
                if y:
                    total += y * (y - z) / (y + z + x[first[i]] + x[second[i]] + rest)
        return total

    orders = [rng.sample(range(size), size) for _ in range(4)] + [list(range(size))[::-1]]
    assert min(gap(first, second) for first in orders for second in orders) >= 0


def test_five_companions_would_break_it() -> None:
    """The same coupling, the two extreme values swapped, is below 0 for five companions and not for two."""
    p = Q(1, 1000)
    law, f, swap = (p, 1 - 2 * p, p), (Q(0), Q(11, 20), Q(1)), (2, 1, 0)

    def gap(companions: int) -> Fraction:
        total = Q(0)
        for y in (1, 2):
            for z in range(3):
                total += (
                    law[y] * law[z] * f[y] * (f[y] - f[z]) / (f[y] + f[z] + companions * f[swap[z]])
                )
        return total

    assert gap(2) > 0 > gap(5)
