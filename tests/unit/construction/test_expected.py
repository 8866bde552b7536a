"""What `verify` compares with, against loops over the definition."""

from __future__ import annotations

import pytest
import torch
from support import oracles_circuit, oracles_parents

import sih
from sih.construction.expected import lag_form, parents_form


def test_the_form_of_parents_holds_exact_posterior_and_output() -> None:
    table = sih.random_parents(3, 12, rng=1, distinct=False)
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=0), table, 12, prior=[0.2, 0.3, 0.5])
    tokens, rows, P = sih.sample(task, 1, rng=0).tokens, table.tolist(), task.P.tolist()
    circuit = sih.construct(task, target="bayes").circuit
    form = parents_form(tokens, task, circuit)
    assert [entry.site for entry in form.last] == [
        f"3.{a}/attention" for a in range(1, circuit.model_heads[2] + 1)
    ]
    for i in circuit.rows.nonzero().flatten().tolist():
        weights = oracles_parents.posterior(tokens[0].tolist(), P, rows, i, task.prior.tolist())
        for entry, head in zip(form.exact, circuit.copying, strict=True):
            paid = [0.0] * 12
            for weight, key in zip(weights, head.keys[i].tolist(), strict=True):
                paid[key] += weight
            assert entry.value[0, i].tolist() == pytest.approx(paid, abs=1e-12)
        law = oracles_parents.law(weights, tokens[0].tolist(), P, rows, i)
        assert form.output.value[0, i].tolist() == pytest.approx(law, abs=1e-6)


def test_the_form_of_lags_claims_rows_from_the_first_exact_one() -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=0), (1, 2), 10)
    tokens, circuit = sih.sample(task, 1, rng=0).tokens, sih.construct(task, sink=True).circuit
    form = lag_form(tokens, task, circuit)
    assert torch.equal(form.output.rows, torch.arange(10) >= circuit.first_exact_position)
    assert form.exact == ()
    for i in range(circuit.first_exact_position, 10):
        given = (tokens[0].tolist(), task.P.tolist(), [1, 2])
        weights = oracles_circuit.sum_evidence_weights(
            *given, list(circuit.head_of_offset), i, circuit.beta, mean=True
        )
        assert form.last[0].value[0, i, i].item() == pytest.approx(weights[0], abs=1e-12)
        assert form.output.value[0, i].tolist() == pytest.approx(
            oracles_circuit.law(weights, *given, i), abs=1e-12
        )
