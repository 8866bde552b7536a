from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sih.base.stats import (
    Estimate,
    estimate,
    paired,
    ratio,
    ratio_of_means,
)

numbers = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(values=numbers)
def test_mean_and_error_by_plain_loops(values: list[float]) -> None:
    mean = sum(values) / len(values)
    error = math.sqrt(sum((x - mean) ** 2 for x in values) / (len(values) - 1)) / math.sqrt(
        len(values)
    )
    assert estimate(values).pair() == pytest.approx((mean, error), rel=1e-9, abs=1e-9)


def test_along_any_axis_as_numpy_does(rng: torch.Generator) -> None:
    values = torch.rand(3, 5, 4, generator=rng, dtype=torch.float64)
    for dim in (0, 1, 2):
        found = estimate(values, dim)
        np.testing.assert_allclose(found.mean, values.numpy().mean(axis=dim), rtol=1e-14)
        expected = values.numpy().std(axis=dim, ddof=1) / values.shape[dim] ** 0.5
        np.testing.assert_allclose(found.error, expected, rtol=1e-13)
    listed = estimate(list(values))
    assert torch.equal(listed.mean, estimate(values).mean)
    assert torch.equal(listed.error, estimate(values).error)


def test_one_repetition_has_an_unknown_error() -> None:
    found = estimate(torch.ones(1, 3))
    assert found.mean.tolist() == [1, 1, 1]
    assert found.error.isnan().all()


@given(values=numbers, others=numbers)
def test_differences_are_taken_before_they_are_averaged(
    values: list[float], others: list[float]
) -> None:
    if min(len(values), len(others)) < 2:
        return
    differences = [a - b for a, b in zip(values, others, strict=False)]
    assert paired(values, others).pair() == pytest.approx(
        estimate(differences).pair(), rel=1e-12, abs=1e-12
    )


def test_what_is_shared_drops_out_of_the_error(rng: torch.Generator) -> None:
    hard = 100 * torch.rand(50, generator=rng, dtype=torch.float64)
    mine, other = hard + 1, hard + torch.rand(50, generator=rng, dtype=torch.float64)
    assert paired(mine, other).error < 0.1 < 1 < estimate(mine).error


def test_the_error_of_a_ratio_is_that_of_both(rng: torch.Generator) -> None:
    """The spread of d / y over many draws of independent d and y."""
    d = 0.5 + 0.02 * torch.randn(200_000, generator=rng, dtype=torch.float64)
    y = 2.0 + 0.1 * torch.randn(200_000, generator=rng, dtype=torch.float64)
    found = ratio(Estimate(0.5, 0.02), Estimate(2.0, 0.1))
    assert found.mean == 1.25
    assert found.error == pytest.approx((1 + d / y).std().item(), rel=0.02)


def test_ratios_and_intervals() -> None:
    found = ratio(Estimate(-0.5, 0.1), Estimate(2.0, 0.0))
    assert found.pair() == (0.75, 0.05)
    assert found.interval() == pytest.approx((0.65, 0.85))
    assert found.interval(1) == pytest.approx((0.7, 0.8))
    known = Estimate(torch.tensor([1.0, -2.0]), torch.zeros(2))
    several = ratio(Estimate(torch.tensor([1.0, 3.0]), torch.tensor([0.5, 0.5])), known)
    assert several.mean.tolist() == [2.0, -0.5]
    assert several.error.tolist() == [0.5, 0.25]


def test_the_error_of_a_ratio_of_means_is_the_bootstraps() -> None:
    draw = np.random.default_rng(0)
    hard = draw.gamma(2.0, size=400)
    x, y = 1.3 * hard + draw.normal(0, 0.3, 400), hard + draw.normal(0, 0.3, 400)
    found = ratio_of_means(torch.from_numpy(x), torch.from_numpy(y))
    chosen = draw.integers(0, 400, (4000, 400))
    again = x[chosen].mean(axis=1) / y[chosen].mean(axis=1)
    assert float(found.mean) == pytest.approx(x.mean() / y.mean(), rel=1e-12)
    assert float(found.error) == pytest.approx(again.std(), rel=0.05)
    apart = math.hypot(
        estimate(torch.from_numpy(x)).error / x.mean(),
        estimate(torch.from_numpy(y)).error / y.mean(),
    )
    assert float(found.error) < 0.5 * apart * float(found.mean)  # what is shared drops out


def test_numbers_are_said_with_two_digits_of_their_error() -> None:
    assert Estimate(7.846, 0.082).with_error() == "7.85 ± 0.16"
    assert Estimate(1234.4, 61.0).with_error() == "1234 ± 122"
    assert Estimate(0.5, 0.0).with_error() == "0.5"
    assert Estimate(math.inf, math.nan).with_error() == "inf"
