"""How far rounding may move attention."""

from __future__ import annotations

import math

import pytest
import torch

import sih
from sih.circuits.rounding import LIMIT, early_rounding, finite, rounding_bounds, weight_error


def test_infinity_becomes_what_the_number_format_has_room_for() -> None:
    for dtype, limit in LIMIT.items():
        assert finite(math.inf, dtype) == limit
        assert finite(3.0, dtype) == 3.0


@pytest.mark.parametrize("delta", [1e-3, 0.5, 3.0])
def test_a_weight_is_off_by_no_more_than_its_log_odds_allow(delta: float) -> None:
    """Over a grid of odds the largest change of a weight is the bound, and it is reached."""
    odds = torch.linspace(-6, 6, 100_001, dtype=torch.float64)
    largest = (torch.sigmoid(odds + delta) - torch.sigmoid(odds)).max().item()
    assert largest == pytest.approx(weight_error(delta), rel=1e-6)


def test_the_bounds_of_the_papers_circuit_number_by_number() -> None:
    circuit = sih.construct(sih.Task([[0.8, 0.2], [0.5, 0.5]], (1, 2), 20), beta=3.0).circuit
    unit, strength = 2.0**-53, 2 * 3.0
    found = rounding_bounds(circuit, torch.float64)
    score = unit * (16 * (500 + strength) + 500 * strength)
    assert found.last == pytest.approx(math.tanh(score / 4) + 64 * unit, rel=1e-12)
    assert found.early == early_rounding(500.0, torch.float64)
    assert found.early == pytest.approx(math.tanh(500 * unit) + 64 * unit, rel=1e-12)
    assert found.posterior is None
