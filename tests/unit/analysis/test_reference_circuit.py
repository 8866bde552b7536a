from __future__ import annotations

import pytest
import torch

import sih
from sih.analysis.reference_circuit import reference_model


@pytest.mark.parametrize(
    ("lags", "heads", "expected"),
    [((1, 2, 3), None, (1, 3, 1)), ((1, 2, 3), 7, (1, 3, 1)), ((1, 2, 3), 1, (1, 1, 1)), ((1, 3), 1, (1, 1, 1))],
)
def test_the_reference_has_as_many_heads(
    lags: tuple[int, ...], heads: int | None, expected: tuple[int, ...], rng: torch.Generator
) -> None:
    found = reference_model(sih.Task(sih.random_transition_matrix(3, rng=rng), lags, 24), heads)
    assert found.config.heads == expected
    assert found.circuit.target == ("two-lags" if len(lags) == 2 else "paper")
