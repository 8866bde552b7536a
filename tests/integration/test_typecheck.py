"""The tests check what is annotated: types, and that an axis has one size in a call."""

from __future__ import annotations

import os

import pytest
import torch
from beartype.roar import BeartypeCallHintViolation

from sih.predictors.metrics import divergence, mean_by_position
from sih.task.counting import transition_counts

pytestmark = pytest.mark.skipif(
    os.environ.get("SIH_TYPES") == "0", reason="SIH_TYPES=0 leaves types unchecked"
)


def test_an_axis_has_one_size_in_a_call() -> None:
    wide = torch.full((2, 3), 1 / 3)
    divergence(wide, wide)
    with pytest.raises(BeartypeCallHintViolation, match="batch"):
        divergence(wide, wide[:1])  # torch itself would broadcast


def test_calls_do_not_see_each_others_sizes() -> None:
    for size in (2, 5):
        divergence(torch.full((size, 3), 1 / 3), torch.full((size, 3), 1 / 3))


def test_plain_types_and_generators_are_checked_too() -> None:
    with pytest.raises(BeartypeCallHintViolation, match="max_lag"):
        mean_by_position([0.5, 0.5], "1")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(Exception, match="tokens"):
        list(transition_counts(torch.ones(3), (1,), 2))
