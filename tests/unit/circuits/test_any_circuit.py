"""What `verify` compares with, against loops over the definition."""

from __future__ import annotations

import pytest
import torch
from support import oracles_circuit

import sih


def test_the_form_of_lags_claims_rows_from_the_first_exact_one() -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=0), (1, 2), 10)
    tokens, circuit = sih.sample(task, 1, rng=0).tokens, sih.construct(task, sink=True).circuit
    form = {each.site: each for each in circuit.expected(tokens, task)}
    last, output = form["3.1/attention"], form["output"]
    assert torch.equal(output.rows, torch.arange(10) >= circuit.first_exact_position)
    assert list(circuit.exact(tokens, task)) == []
    for i in range(circuit.first_exact_position, 10):
        given = (tokens[0].tolist(), task.P.tolist(), [1, 2])
        weights = oracles_circuit.sum_evidence_weights(
            *given, list(circuit.head_of_offset), i, circuit.beta, mean=True
        )
        assert last.value[0, i, i].item() == pytest.approx(weights[0], abs=1e-12)
        assert output.value[0, i].tolist() == pytest.approx(
            oracles_circuit.law(weights, *given, i), abs=1e-12
        )
