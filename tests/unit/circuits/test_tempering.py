"""The exponent of the first layer, and its certified error."""

from __future__ import annotations

import math

import pytest
import torch

from sih.circuits.tempering import best_tempering
from sih.task import Task


def test_the_chosen_exponent_is_the_best_of_its_grid(task: Task) -> None:
    for symmetric in (False, True):
        best = best_tempering(task, 3.0, torch.float64, symmetric=symmetric)
        assert best.truncation > 0
        assert best.rounding > 0
        assert 1e-12 < best.temper < 0.1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_bound_is_the_one_that_is_proved(dtype: torch.dtype) -> None:
    """The module's docstring, number by number, for 30 transitions."""
    task = Task([[0.8, 0.2], [0.3, 0.7]], (1, 2), 32)
    R, unit = math.log(0.7 / 0.2), 2.0**-53 if dtype == torch.float64 else 2.0**-24
    one, two = (
        best_tempering(task, 30.0, dtype, symmetric=symmetric) for symmetric in (False, True)
    )
    for found, power, factor in ((one, 1, 1 / 2), (two, 2, 1 / 6)):
        g = found.temper
        truncated = factor * g**power * R ** (power + 1) * (1 + power * g * R) * math.exp(g * R)
        assert found.truncation == pytest.approx(30 * truncated, rel=1e-12)
        assert found.rounding == pytest.approx(16 * unit * 2 / g * 30, rel=1e-12)
        assert found.bound == pytest.approx(
            math.tanh((found.truncation + found.rounding) / 4), rel=1e-12
        )
