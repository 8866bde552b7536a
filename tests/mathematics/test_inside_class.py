"""Lemmas E, B and T at every kind of point, in floats and fractions; each must fail once it is bent."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations

import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st
from mathematics.lemma_sides import Sides, lemma_b_sides, lemma_e_sides, lemma_t_sides
from mathematics.oracles_lemmas import Between, log
from torch import Tensor

pytestmark = pytest.mark.slow

LEMMAS: dict[str, tuple[int, Callable[..., Sides]]] = {
    "E": (2, lemma_e_sides),
    "B": (3, lemma_b_sides),
    "T": (3, lemma_t_sides),
}

values = st.one_of(
    st.sampled_from(
        [Fraction(0), Fraction(1), Fraction(1, 2), Fraction(2), Fraction(1, 10**9), Fraction(10**6)]
    ),
    st.fractions(0, 3, max_denominator=60),
    st.fractions(Fraction(99, 100), Fraction(101, 100), max_denominator=10**4),
)
rests = st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(50)])


def points(count: int, variables: int, rng: torch.Generator) -> list[Tensor]:
    """Log-uniform over five decades; many near one another, some 0."""
    found = [
        10 ** (5 * torch.rand(count, generator=rng, dtype=torch.float64) - 4)
        for _ in range(variables)
    ]
    for j in range(1, variables):
        width = 10 ** (-4 * torch.rand(count, generator=rng, dtype=torch.float64))
        near = found[0] * torch.exp(width * torch.randn(count, generator=rng, dtype=torch.float64))
        found[j] = torch.where(torch.rand(count, generator=rng) < 0.4, near, found[j])
        found[j] = torch.where(torch.rand(count, generator=rng) < 0.05, 0.0, found[j])
    return found


@pytest.mark.parametrize("rest", [0.0, 1e-3, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("name", LEMMAS)
def test_the_integrand_is_never_below_the_potentials(
    name: str, rest: float, rng: torch.Generator
) -> None:
    variables, sides = LEMMAS[name]
    at = points(300_000, variables, rng)
    left, right = sides(*at, rest)
    slack = (left - right) / (torch.stack(at).amax(dim=0) + rest)
    assert slack.min() >= -1e-13
    assert slack.max() > 1e-2


@given(st.floats(0, 1e6), st.one_of(st.just(0.0), st.floats(1e-12, 1e6)))
def test_the_sides_touch_where_all_are_equal(value: float, rest: float) -> None:
    for variables, sides in LEMMAS.values():
        left, right = sides(*[torch.tensor([value], dtype=torch.float64)] * variables, rest)
        assert left.item() == right.item() == 0


def e_slack(y: Fraction, z: Fraction, rest: Fraction) -> Between:
    left = y * (y - z) / (y + z + rest) if y else Fraction(0)
    slack = Between(left, left) + (z - y) / 2
    return slack + log((2 * y + rest) / (2 * z + rest)).times(rest / 4) if rest else slack


def b_slack(y: Fraction, companion: Fraction, z: Fraction, rest: Fraction) -> Between:
    y, companion, z = y + rest / 3, companion + rest / 3, z + rest / 3
    total = y + companion + z
    left = (y - z) * (y - companion) / total if total else Fraction(0)
    slack = Between(left, left) + (companion - y) / 2
    return slack + log((2 * y + z) / (2 * companion + z)).times(3 * z / 4) if z else slack


def t_slack(a: Fraction, b: Fraction, c: Fraction, rest: Fraction) -> Between:
    left = 9 * a * (a - b) / (a + b + c + rest) if a else Fraction(0)
    m = rest / 3
    a, b, c = a + m, b + m, c + m

    def pair(p: Fraction, q: Fraction) -> Fraction:
        return (
            Fraction(3, 2) * (p - q) ** 2 * (p + q - 2 * m) / (p + q) ** 2 if p + q else Fraction(0)
        )

    slack = Between(left, left) + (-3 * (a - b) - pair(a, b) + pair(b, c))
    return slack + log(a / b).times(3 * m) if m else slack


@given(values, values, values, rests)
def test_in_fractions(a: Fraction, b: Fraction, c: Fraction, rest: Fraction) -> None:
    """No rounding: what is below 0 by less than the logarithm is known would be equality."""
    for slack in (e_slack(a, b, rest), b_slack(a, b, c, rest), t_slack(a, b, c, rest)):
        assert slack.high >= 0
        assert slack.low >= -Fraction(1, 10**40)


@given(values, values, values, rests)
def test_floats_are_the_fractions(a: Fraction, b: Fraction, c: Fraction, rest: Fraction) -> None:
    """The code's sides against the oracle's, which shares none of it."""
    at = [torch.tensor([float(x)], dtype=torch.float64) for x in (a, b, c)]
    for (variables, sides), slack in zip(
        LEMMAS.values(),
        (e_slack(a, b, rest), b_slack(a, b, c, rest), t_slack(a, b, c, rest)),
        strict=True,
    ):
        left, right = sides(*at[:variables], float(rest))
        assert (left - right).item() == pytest.approx(float(slack.low), abs=1e-8)


def test_bent_potentials_fail() -> None:
    """A slope of G that is a percent off is no potential, in either direction; nor is V of another size."""
    y, z = torch.tensor([1.0, 1.0]).double(), torch.tensor([1.001, 0.999]).double()
    for name, at in (("E", (y, z)), ("B", (y, z, 0.3 * y)), ("T", (y, z, y))):
        left, right = LEMMAS[name][1](*at, 0.5)
        assert (left - right).min() >= -1e-15
        for bend in (0.99, 1.01):
            assert (left - bend * right).min() < 0


def test_lemma_b_last_step() -> None:
    """u(1) = 0 and the derivative of u as printed."""
    x = sympy.Symbol("x", positive=True)
    u = (x - 1) * (x + 5) / (x + 1) - 3 * sympy.log(x)
    assert u.subs(x, 1) == 0
    assert sympy.simplify(sympy.diff(u, x) - (x - 1) * (x**2 + 3) / (x * (x + 1) ** 2)) == 0


@given(st.floats(1, 1e6), st.floats(1, 1e4))
def test_lemma_b_hardest_at_the_least_p(x: float, a: float) -> None:
    left = (a * (x - 1) + 6) * (x - 1) / (x + 1)
    assert left >= (x - 1) * (x + 5) / (x + 1) - 1e-9 * left
    assert (x - 1) * (x + 5) / (x + 1) >= 3 * math.log(x) - 1e-9


def lemma_t_polynomial(
    a: sympy.Expr, b: sympy.Expr, c: sympy.Expr, m: sympy.Expr, rising: bool
) -> sympy.Expr:
    """What Lemma T leaves to show, times 2ab(a+b+c)(a+b)^2(b+c)^2; `rising` is a < b."""
    pairs = (a + b) ** 2 * (b + c) ** 2
    total = a + b + c
    value = 6 * (a - m) * (a - b) * (2 * a - b - c) * b * pairs
    value -= 3 * (a - b) ** 2 * (a + b - 2 * m) * a * b * total * (b + c) ** 2
    value += 3 * (b - c) ** 2 * (b + c - 2 * m) * a * b * total * (a + b) ** 2
    return value + (3 * m * (b - a) ** 2 * total * pairs if rising else 0)


def test_lemma_t_has_positive_coefficients() -> None:
    """Computer algebra: 737 coefficients over the six orders of a, b, c, each positive."""
    x, w, m, t = sympy.symbols("x w m t")
    count = 0
    for order in permutations("abc"):
        at: dict[str, sympy.Expr] = dict(zip(order, (m + t, m + t + x, m + t + x + w), strict=True))
        rising = order.index("a") < order.index("b")
        found = sympy.Poly(
            lemma_t_polynomial(at["a"], at["b"], at["c"], m, rising), x, w, m, t
        ).coeffs()
        assert min(found) > 0
        count += len(found)
    assert count == 737


def test_lemma_t_is_strict() -> None:
    """Where the least of a, b, c (or m) is above 0 some coefficient of x alone, and of w alone, is left beside it.

    Where the least is 0 and m = 0 the cleared polynomial may vanish; the slack itself does not.
    """
    x, w, m, t = sympy.symbols("x w m t")
    for order in permutations("abc"):
        at: dict[str, sympy.Expr] = dict(zip(order, (m + t, m + t + x, m + t + x + w), strict=True))
        rising = order.index("a") < order.index("b")
        left = sympy.expand(lemma_t_polynomial(at["a"], at["b"], at["c"], m, rising))
        for nothing in ({w: 0, t: 0}, {w: 0, m: 0}, {x: 0, t: 0}, {x: 0, m: 0}):
            assert left.subs(nothing) != 0
        assert order[0] != "c" or left.subs({w: 0, t: 0, m: 0}) != 0  # c = 0 < a, b
    for a, b, c in ((3, 0, 0), (3, 0, 2), (0, 2, 0), (0, 2, 3), (3, 2, 0), (2, 3, 0), (0, 0, 2)):
        assert t_slack(Fraction(a), Fraction(b), Fraction(c), Fraction(0)).low > 0
    u, v = sympy.symbols("u v", positive=True)  # b = 0: 9a^2/(a+c) - 9a/2 + 3c/2, cleared
    assert sympy.discriminant(9 * u**2 / 2 - 3 * u * v + 3 * v**2 / 2, u) == -18 * v**2


def test_lemma_t_polynomial_is_the_inequality() -> None:
    """The cleared polynomial is the slack, less what concavity gives away."""
    a, b, c, m = sympy.symbols("a b c m", positive=True)

    def pair(p: sympy.Expr, q: sympy.Expr) -> sympy.Expr:
        return sympy.Rational(3, 2) * (p - q) ** 2 * (p + q - 2 * m) / (p + q) ** 2

    for rising in (False, True):
        slack = 3 * (1 - m / a) * (a - b) * (2 * a - b - c) / (a + b + c) - pair(a, b) + pair(b, c)
        slack += 3 * m * (b - a) ** 2 / (2 * a * b) if rising else 0
        cleared = slack * 2 * a * b * (a + b + c) * (a + b) ** 2 * (b + c) ** 2
        assert sympy.simplify(cleared - lemma_t_polynomial(a, b, c, m, rising)) == 0


@given(values, values, rests)
def test_lemma_t_concavity(a: Fraction, b: Fraction, rest: Fraction) -> None:
    """xi(a)(a-b) >= A(a)-A(b), and for a < b with m(b-a)^2/2ab to spare."""
    m = rest / 3
    a, b = a + m, b + m
    if m:
        slack = log(a / b).times(m) + (b - a) + (1 - m / a) * (a - b)
        slack = slack + -m * (b - a) ** 2 / (2 * a * b) if a < b else slack
        assert slack.low >= -Fraction(1, 10**40)
