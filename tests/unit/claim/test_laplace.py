"""1/x as a sum of exponentials: as good as it says, everywhere it says."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sih.claim.laplace import reciprocal_rule


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8, 1e-13])
@pytest.mark.parametrize(("smallest", "largest"), [(1e-15, 16.0), (1e-6, 2.0), (0.3, 0.4)])
def test_error_is_bounded_where_promised(smallest: float, largest: float, tolerance: float) -> None:
    rule = reciprocal_rule(smallest, largest, tolerance)
    rng = torch.Generator().manual_seed(1)
    spread = torch.rand(20_000, generator=rng, dtype=torch.float64) * math.log(largest / smallest)
    x = smallest * spread.exp()
    assert rule.error <= tolerance
    assert (x * rule(x) - 1).abs().max() <= rule.error + 2e-15


@given(st.floats(0, 1, exclude_min=True))
def test_never_much_more_than_the_reciprocal_below_the_range(fraction: float) -> None:
    rule = reciprocal_rule(1e-6, 4.0, 1e-8)
    x = torch.tensor([1e-6 * fraction], dtype=torch.float64)
    assert 0 <= (x * rule(x)).item() <= 1 + rule.error


def test_few_nodes_and_more_for_more_digits() -> None:
    coarse, fine = reciprocal_rule(1e-9, 12.0, 1e-8), reciprocal_rule(1e-9, 12.0, 1e-12)
    assert len(coarse.nodes) < len(fine.nodes) < 120


@pytest.mark.parametrize(
    "arguments", [(0.0, 1.0, 1e-8), (2.0, 1.0, 1e-8), (0.1, 1.0, 1e-20), (0.1, 1.0, 2.0)]
)
def test_bad_input(arguments: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="got"):
        reciprocal_rule(*arguments)
