"""Circuits for any parents: what they copy adds up to the parents, the closed form against loops, what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles_parents as oracle
from support.strategies import parent_tables

import sih
from sih.beyond.any_parents.targets import PaperParentsCircuit
from sih.circuits.offset_heads import Evidence

P2 = [[0.9, 0.1], [0.5, 0.5]]


@settings(max_examples=20)
@given(parent_tables(9), st.integers(0, 1000))
def test_the_closed_form_against_loops(table: list[list[int]], seed: int) -> None:
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=seed), table, len(table[0]) - 1)
    tokens, P = sih.sample(task, 2, rng=seed).tokens, task.P.tolist()
    kinds: tuple[Evidence, ...] = ("mean", "sum")
    for evidence in kinds:
        circuit = PaperParentsCircuit(
            third="parents",
            parents=tuple(map(tuple, task.table.tolist())),
            length=task.length,
            head_of_token=((-1,) * task.length,),
            evidence=evidence,
            beta=7.0,
        )
        weights = circuit.weights(tokens, task)
        torch.testing.assert_close(
            weights, sih.selective_weights(tokens, task, beta=7.0, evidence=evidence)
        )
        for b, i in itertools.product(range(2), range(task.length)):
            expected = oracle.selective_weights(
                tokens[b].tolist(), P, table, i, 7.0, evidence == "mean"
            )
            assert weights[b, i].tolist() == pytest.approx(expected, abs=1e-12)


def test_lags_as_a_table_have_the_closed_form_of_lags() -> None:
    task = sih.Task(sih.random_transition_matrix(4, rng=0), (1, 3, 4), 30)
    same = sih.ParentsTask(task.P, task.parents(31), 30)
    tokens = sih.sample(task, 4, rng=1).tokens
    ways: list[dict[str, Any]] = [{"sink": True}, {"evidence": "sum", "beta": 3.0}]
    for options in ways:
        lags = sih.construct(task, **options)
        table = sih.construct_parents(
            same, **{name: value for name, value in options.items() if name != "sink"}
        )
        assert table.config.heads == lags.config.heads  # found again, without knowing of lags
        theirs = table.circuit.weights(tokens, same)
        gap = sih.circuit_weights(tokens, task, lags.circuit) - theirs
        assert gap[:, lags.circuit.first_exact_position :].abs().max() < 1e-12
        assert (lags.predict(tokens) - table.predict(tokens))[
            :, task.max_lag - 1 :
        ].abs().max() < 1e-12


def test_the_fewest_heads_are_those_of_the_last_row_with_a_choice() -> None:
    task = sih.ParentsTask(P2, sih.random_parents(3, 20, rng=0), 20)
    for third in ("parents", "slots"):
        circuit = sih.construct_parents(task, third=third).circuit
        assert circuit.fewest.lower == 5 <= circuit.heads
    tree = sih.ParentsTask(P2, sih.random_parents(1, 20, rng=0), 20)
    assert sih.construct_parents(tree).circuit.fewest.lower == 0


def test_the_form_of_parents_holds_exact_posterior_and_output() -> None:
    table = sih.random_parents(3, 12, rng=1, distinct=False)
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=0), table, 12, prior=[0.2, 0.3, 0.5])
    tokens, rows, P = sih.sample(task, 1, rng=0).tokens, table.tolist(), task.P.tolist()
    circuit = sih.construct_parents(task, target="bayes").circuit
    output = list(circuit.expected(tokens, task))[-1]
    exact = list(circuit.exact(tokens, task))
    assert [entry.site for entry in exact] == [
        f"3.{a}/attention" for a in range(1, circuit.model_heads[2] + 1)
    ]
    for i in circuit.rows.nonzero().flatten().tolist():
        weights = oracle.posterior(tokens[0].tolist(), P, rows, i, task.prior.tolist())
        for entry, head in zip(exact, circuit.copying, strict=True):
            paid = [0.0] * 12
            for weight, key in zip(weights, head.keys[i].tolist(), strict=True):
                paid[key] += weight
            assert entry.value[0, i].tolist() == pytest.approx(paid, abs=1e-12)
        law = oracle.law(weights, tokens[0].tolist(), P, rows, i)
        assert output.value[0, i].tolist() == pytest.approx(law, abs=1e-6)
