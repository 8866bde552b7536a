"""K - 1 heads in closed form: the identity behind them, and the criterion for every set of lags."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import sih
from sih.heads.mixing import (
    angles,
    exact_profile,
    mixing_profile,
    parabola_and_waves,
    progression,
)
from sih.task import Task


@pytest.mark.parametrize("count", range(2, 17))
def test_a_parabola_and_waves_make_an_indicator(count: int) -> None:
    c, waves = parabola_and_waves(count)
    assert len(waves) == (count - 1) // 2
    assert all(r > 0 for r in waves.values())

    def value(x: int) -> float:
        return -c * x * x + sum(r * math.cos(theta * x) for theta, r in waves.items())

    for x in range(1, count):
        assert value(0) - value(x) == pytest.approx(1, abs=1e-12)
    for theta in angles(count):
        if theta < 3:
            assert math.tan(count * theta / 2) == pytest.approx(
                count * math.tan(theta / 2), rel=1e-9
            )


@pytest.mark.parametrize("count", range(2, 13))
def test_intervals_are_exact_with_a_head_fewer_than_lags(count: int) -> None:
    profile = mixing_profile(tuple(range(1, count + 1)), 128)
    assert profile.heads == count - 1
    assert profile.weights.min() > 0.09
    assert profile.residual.max() < 1e-10


def test_every_set_of_lags_is_part_of_a_progression() -> None:
    assert progression((2, 5)) == (3, 2)
    assert progression((3, 5, 9)) == (2, 4)
    for size in range(2, 8):
        for lags in itertools.combinations(range(1, 10), size):
            profile = mixing_profile(lags, 40)
            assert profile.heads == progression(lags)[1] - 1
            assert profile.residual.max() < 1e-11


def test_no_exact_profile_without_two_lags_a_transition_or_the_heads() -> None:
    assert exact_profile((4,), 20, most=9) is None
    assert exact_profile((1, 2), 2, most=9) is None
    assert exact_profile((1, 2, 3), 20, most=1) is None
    assert exact_profile((1, 2, 3), 20, most=2) is not None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("symmetric", [False, True])
def test_as_weights_with_a_prior_within_the_bound(
    symmetric: bool, dtype: torch.dtype, rng: torch.Generator
) -> None:
    for lags in [(1, 2), (2, 4, 6), (1, 3, 4)]:
        prior = tuple(torch.softmax(torch.arange(len(lags), dtype=torch.float64), 0).tolist())
        task = Task(sih.random_transition_matrix(4, rng=rng), lags, 40 if symmetric else 24, prior)
        model = sih.construct(
            task, target="bayes", heads=progression(lags)[1] - 1, symmetric=symmetric, dtype=dtype
        )
        assert model.circuit.profile is not None
        found = sih.verify(model, task)
        assert found.ok
        assert found.posterior_error is not None
        assert found.bound is not None
        assert found.posterior_error <= found.bound
        if dtype == torch.float64:
            assert found.bound < (1e-6 if symmetric else 1e-3)
