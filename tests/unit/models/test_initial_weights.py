"""Weights are drawn from what is said, the same ones for the same seed, in place."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from sih.models.initial_weights import draw_normal, draw_uniform


def drawn(
    draw: Callable[[nn.Parameter, float, torch.Generator], None], size: float, seed: int = 0
) -> np.ndarray:
    weight = nn.Parameter(torch.zeros(200, 500, dtype=torch.float64))
    draw(weight, size, torch.Generator().manual_seed(seed))
    return weight.detach().numpy()


def test_uniform_numbers_fill_the_interval() -> None:
    numbers = drawn(draw_uniform, 0.25)
    assert -0.25 <= numbers.min() < -0.2499
    assert 0.2499 < numbers.max() <= 0.25
    # 100,000 numbers: five standard errors of the mean and of the variance
    assert abs(numbers.mean()) < 5 * 0.25 / np.sqrt(3e5)
    assert numbers.var() == pytest.approx(0.25**2 / 3, rel=0.02)


def test_normal_numbers_have_the_deviation() -> None:
    numbers = drawn(draw_normal, 0.02)
    assert abs(numbers.mean()) < 5 * 0.02 / np.sqrt(1e5)
    assert numbers.std() == pytest.approx(0.02, rel=0.012)
    assert np.abs(numbers).max() > 3.5 * 0.02  # no uniform numbers of this deviation


@pytest.mark.parametrize("draw", [draw_normal, draw_uniform])
def test_a_seed_gives_the_same_numbers(
    draw: Callable[[nn.Parameter, float, torch.Generator], None],
) -> None:
    first = drawn(draw, 1.0, seed=3)
    assert (first == drawn(draw, 1.0, seed=3)).all()
    assert (first != drawn(draw, 1.0, seed=4)).any()
