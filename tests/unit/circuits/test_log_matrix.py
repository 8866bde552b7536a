"""The logarithm of a matrix with a number in place of log 0."""

from __future__ import annotations

import math

import pytest
import torch

from sih.circuits.log_matrix import ZERO, log_matrix

P = torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=torch.float64)


def test_logs_are_times_the_power_and_zero_stays_what_it_is() -> None:
    found = log_matrix(P, 2.0).tolist()
    assert found[0] == pytest.approx([2 * math.log(0.25), 2 * math.log(0.75)], rel=1e-15)
    assert found[1] == [0.0, ZERO]
    assert log_matrix(P, -2.0)[1, 1].item() == ZERO


def test_another_number_for_log_0_takes_part_in_the_power() -> None:
    assert log_matrix(P, 0.5, -100.0)[1, 1].item() == -50.0
    assert log_matrix(P, -0.5, -100.0)[1, 1].item() == 50.0
