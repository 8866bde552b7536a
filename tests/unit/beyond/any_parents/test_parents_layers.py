"""The weights for any parents, layer by layer, against loops over the table."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import oracles_parents as oracle
from support.strategies import parent_tables

import sih
from sih.base.errors import FieldError

WAYS: list[dict[str, Any]] = [
    {},
    {"third": "slots"},
    {"evidence": "sum", "beta": 2.0},
    {"evidence": "sum", "beta": 2.0, "third": "slots"},
]


def _built(task: sih.ParentsTask, **options: Any) -> sih.DisentangledTransformer:
    """The circuit, unless the table has no row that one could serve."""
    try:
        return sih.construct_parents(task, **options)
    except FieldError as refused:
        assume("no token" not in str(refused))
        raise


@settings(max_examples=30)
@given(parent_tables(11), st.integers(0, 1000), st.sampled_from(WAYS))
def test_the_output_is_that_of_the_definition(
    table: list[list[int]], seed: int, options: dict[str, Any]
) -> None:
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=seed), table, len(table[0]) - 1)
    model = _built(task, **options)
    batch, P = sih.sample(task, 2, rng=seed), task.P.tolist()
    law, circuit = model.predict(batch.tokens), model.circuit
    for b, i in itertools.product(range(2), circuit.rows.nonzero().flatten().tolist()):
        tokens = batch.tokens[b].tolist()
        mean = options.get("evidence", "mean") == "mean"
        weights = oracle.selective_weights(tokens, P, table, i, circuit.beta, mean)
        assert law[b, i].tolist() == pytest.approx(
            oracle.law(weights, tokens, P, table, i), abs=1e-9
        )


@settings(max_examples=20)
@given(parent_tables(11), st.integers(0, 1000), st.booleans())
def test_the_bayes_circuit_is_bayes_rule(
    table: list[list[int]], seed: int, symmetric: bool
) -> None:
    rng = torch.Generator().manual_seed(seed)
    prior = torch.softmax(torch.randn(len(table), generator=rng).double(), dim=0)
    task = sih.ParentsTask(
        sih.random_transition_matrix(3, rng=rng), table, len(table[0]) - 1, prior
    )
    model = _built(task, target="bayes", symmetric=symmetric)
    batch, P = sih.sample(task, 2, rng=rng), task.P.tolist()
    law = model.predict(batch.tokens)
    for b, i in itertools.product(range(2), model.circuit.rows.nonzero().flatten().tolist()):
        tokens = batch.tokens[b].tolist()
        weights = oracle.posterior(tokens, P, table, i, task.prior.tolist())
        assert law[b, i].tolist() == pytest.approx(
            oracle.law(weights, tokens, P, table, i), abs=1e-5
        )


def test_what_each_layer_holds() -> None:
    """Layer 1 keeps a share at each parent, layer 2 adds those of its tokens up, the slots' head has the weights."""
    table = sih.random_parents(3, 14, rng=5, distinct=False)
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=0), table, 14)
    model = sih.construct_parents(task, evidence="sum", beta=2.0)
    circuit, rows, P = model.circuit, table.tolist(), task.P.tolist()
    assert circuit.third == "slots"
    batch = sih.sample(task, 1, rng=0)
    trace, tokens = model.trace(batch.tokens), batch.tokens[0].tolist()
    kept = []
    for n in range(14):
        at = [0.0] * 14
        for h, share in enumerate(oracle.shares(tokens, P, rows, n) if n else []):
            at[rows[h][n]] += share  # hypotheses with one parent have one place
        kept.append(at)
        if n:
            assert trace["1.1/attention"][0, n].tolist() == pytest.approx(at, abs=1e-12)
    (heads,) = circuit.head_of_token
    for head, i in itertools.product(range(circuit.heads), range(14)):
        taken = [n for n in range(i + 1) if heads[n] == head]
        most = heads.count(head)
        expected = [
            sum(kept[n][m] for n in taken) / most + (m == 0) * (1 - len(taken) / most)
            for m in range(14)
        ]
        assert trace[f"2.{head + 1}/1.1/position"][0, i].tolist() == pytest.approx(
            expected, abs=1e-12
        )
    slots = next(
        a for a, head in enumerate(circuit.copying, 1) if (head.keys == torch.arange(3)).all()
    )
    for i in range(5, 14):
        weights = oracle.selective_weights(tokens, P, rows, i, 2.0, mean=False)
        assert trace[f"3.{slots}/attention"][0, i, :3].tolist() == pytest.approx(weights, abs=1e-12)


def test_a_logit_readout_is_the_mean_logarithm() -> None:
    task = sih.ParentsTask(
        sih.random_transition_matrix(3, rng=0), sih.random_parents(2, 10, rng=0), 10
    )
    tokens, P = sih.sample(task, 1, rng=0).tokens, task.P.log().tolist()
    model = sih.construct_parents(task, readout="logit", third="slots")
    rows = task.parents(11).tolist()
    for i in range(3, 10):
        weights = oracle.selective_weights(tokens[0].tolist(), task.P.tolist(), rows, i, 100.0)
        expected = oracle.law(weights, tokens[0].tolist(), P, rows, i)
        assert model(tokens)[0, i].tolist() == pytest.approx(expected, abs=1e-9)


def test_one_tree_copies_the_parent() -> None:
    """Nichani et al.'s single-parent tree with P known: Bayes predicts the parent's row, and so does the circuit."""
    (tree,) = sih.random_parents(1, 24, rng=1, distinct=False).tolist()
    task = sih.ParentsTask(sih.random_transition_matrix(4, rng=0), [tree], 24)
    tokens, P = sih.sample(task, 3, rng=0).tokens, task.P.tolist()
    expected = torch.tensor(
        [[P[row[tree[i + 1]]] for i in range(24)] for row in tokens.tolist()], dtype=torch.float64
    )
    assert (sih.bma(tokens, task) - expected).abs().max() == 0
    for target in ("paper", "bayes"):
        model = sih.construct_parents(task, target=target)
        assert (model.predict(tokens) - expected).abs().max() < 1e-12
        assert sih.verify(model, task).ok
