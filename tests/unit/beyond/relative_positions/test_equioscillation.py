"""Least errors of rational functions: certificates in exact fractions, and known values."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
import torch

from sih.beyond.relative_positions.equioscillation import Alternation, chebyshev, least_error
from sih.beyond.relative_positions.two_layers import logistic

Q = Fraction


def by_clenshaw(coefficients: list[Fraction], x: Fraction) -> Fraction:
    """Evaluate a series of Chebyshev's polynomials by their recursion."""
    values = [Q(1), x]
    while len(values) < len(coefficients):
        values.append(2 * x * values[-1] - values[-2])
    return sum((c * v for c, v in zip(coefficients, values, strict=False)), Q(0))


def exact_errors(f: torch.Tensor, found: Alternation) -> list[Fraction]:
    over, below = ([Q(c) for c in x.tolist()] for x in (found.over, found.below))
    errors = []
    for s in found.points.tolist():
        x = 2 * Q(s, len(f) - 1) - 1
        denominator = by_clenshaw(below, x)
        assert denominator > 0
        errors.append(Q(f[s].item()) - by_clenshaw(over, x) / denominator)
    return errors


@pytest.mark.parametrize("degree", [1, 2, 4, 6])
@pytest.mark.parametrize(("slots", "step"), [(16, 1.0), (64, 1.0), (64, 4.0), (33, 0.5)])
def test_the_certificate_in_fractions(slots: int, step: float, degree: int) -> None:
    """At 2H + 2 different points Q > 0, and the errors alternate, each of the level at least."""
    f = logistic(slots, step, 0.3)
    found = least_error(f, degree)
    points = found.points.tolist()
    assert points == sorted(set(points))
    assert len(points) == 2 * degree + 2
    errors = exact_errors(f, found)
    assert all(x * y < 0 for x, y in pairwise(errors))
    assert float(min(map(abs, errors))) == pytest.approx(found.level, rel=1e-6)


@pytest.mark.parametrize("degree", [1, 2, 3, 5])
def test_the_bound_is_attained(degree: int) -> None:
    """The function that alternates has no larger error anywhere: the bound is the least error."""
    for slots, step in ((16, 1.0), (64, 1.0), (64, 4.0)):
        found = least_error(logistic(slots, step, 0.3), degree)
        assert found.level <= found.largest <= 1.01 * found.level


def test_nothing_on_a_grid_does_better_on_four_points() -> None:
    """Degree 1 on the values 0, 0, 1, 1, against a grid of N/Q with Q = 1 + q x."""
    f = torch.tensor([0.0, 0.0, 1.0, 1.0])
    level = least_error(f, 1).level
    x = chebyshev(torch.arange(4), 3, 1)[:, 1]
    q, p, slope = torch.meshgrid(
        torch.linspace(-0.99, 0.99, 67, dtype=torch.float64),
        torch.linspace(-1, 2, 61, dtype=torch.float64),
        torch.linspace(-1.5, 1.5, 61, dtype=torch.float64),
        indexing="ij",
    )
    ratio = (p[..., None] + slope[..., None] * x) / (1 + q[..., None] * x)
    best = (ratio - f.double()).abs().amax(dim=-1).min().item()
    assert level <= best <= level + 0.03


def test_a_rational_function_itself_has_no_error_left() -> None:
    s = torch.arange(13, dtype=torch.float64)
    f = (1 + s) / (3 + 2 * s) + 1e-3 * (-1.0) ** s
    assert least_error(f, 1).level == pytest.approx(1e-3, rel=0.05)
