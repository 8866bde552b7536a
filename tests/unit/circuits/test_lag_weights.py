"""The closed form without weights."""

from __future__ import annotations

import torch

import sih


def test_closed_form_of_a_long_sequence_is_quick(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    circuit = sih.construct(task).circuit
    weights = sih.circuit_weights(torch.randint(5, (1, 100_000), generator=rng), task, circuit)
    assert weights.shape == (1, 100_000, 3)
    assert weights.isfinite().all()
