from __future__ import annotations

import pytest
import torch

import sih
from sih.attention.reference_circuit import reference_model, sequence_of_lag


@pytest.mark.parametrize(
    ("lags", "heads", "expected"),
    [
        ((1, 2, 3), None, (1, 3, 1)),
        ((1, 2, 3), 7, (1, 3, 1)),
        ((1, 2, 3), 1, (1, 1, 1)),
        ((1, 3), 1, (1, 1, 1)),
    ],
)
def test_the_reference_has_as_many_heads(
    lags: tuple[int, ...], heads: int | None, expected: tuple[int, ...], rng: torch.Generator
) -> None:
    found = reference_model(sih.Task(sih.random_transition_matrix(3, rng=rng), lags, 24), heads)
    assert found.config.heads == expected
    assert found.circuit.target == ("two-lags" if len(lags) == 2 else "paper")


def test_a_sequence_of_the_lag_asked_for() -> None:
    """P moves on by one every step, so a token tells its parent; the first tokens are nobody's children."""
    cycle = (1 - 1e-9) * torch.eye(5, dtype=torch.float64).roll(1, 1) + 1e-9 / 5
    task = sih.Task(cycle / cycle.sum(dim=-1, keepdim=True), (1, 2, 4), 40)
    for lag in task.lags:
        tokens = sequence_of_lag(task, lag, rng=torch.Generator().manual_seed(lag))[0]
        assert ((tokens[4:] - tokens[4 - lag : 40 - lag]) % 5 == 1).all()
