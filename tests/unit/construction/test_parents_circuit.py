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
from sih.checks import FieldError
from sih.construction.circuit import Circuit, Evidence
from sih.construction.parents_circuit import (
    ParentsCircuit,
    check_table,
    parents_weights,
    read_circuit,
    shared_parent,
)

P2 = [[0.9, 0.1], [0.5, 0.5]]


@settings(max_examples=30)
@given(st.integers(1, 4), st.integers(0, 1000), st.booleans())
def test_what_slots_copy_adds_up_to_the_parents(count: int, seed: int, distinct: bool) -> None:
    """And each key of a head stands for one hypothesis in all rows."""
    table = tuple(map(tuple, sih.random_parents(count, 16, rng=seed, distinct=distinct).tolist()))
    circuit = ParentsCircuit("paper", "slots", table, 16, ((-1,) * 16,), "sum", 1.0)
    assert len(circuit.copying) in (1, count + 1, 2 * count + 2)
    for row, h in itertools.product(circuit.rows.nonzero().flatten().tolist(), range(count)):
        total = [0.0] * 16
        for head in circuit.copying:
            assert 0 <= head.keys[row, h] <= row
            total[int(head.keys[row, h])] += head.times
        assert total == [float(n == table[h][row + 1]) for n in range(16)]
    for head in circuit.copying:
        stands: dict[int, int] = {}
        for row, h in itertools.product(circuit.rows.nonzero().flatten().tolist(), range(count)):
            assert stands.setdefault(int(head.keys[row, h]), h) == h


@settings(max_examples=20)
@given(parent_tables(9), st.integers(0, 1000))
def test_the_closed_form_against_loops(table: list[list[int]], seed: int) -> None:
    task = sih.ParentsTask(sih.random_transition_matrix(3, rng=seed), table, len(table[0]) - 1)
    tokens, P = sih.sample(task, 2, rng=seed).tokens, task.P.tolist()
    kinds: tuple[Evidence, ...] = ("mean", "sum")
    for evidence in kinds:
        circuit = ParentsCircuit(
            "paper", "parents", (), task.length, ((-1,) * task.length,), evidence, 7.0
        )
        weights = parents_weights(tokens, task, circuit)
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
        table = sih.construct(
            same, **{name: value for name, value in options.items() if name != "sink"}
        )
        assert table.config.heads == lags.config.heads  # found again, without knowing of lags
        gap = sih.circuit_weights(tokens, task, lags.circuit) - parents_weights(
            tokens, same, table.circuit
        )
        assert gap[:, lags.circuit.first_exact_position :].abs().max() < 1e-12
        assert (lags.predict(tokens) - table.predict(tokens))[
            :, task.max_lag - 1 :
        ].abs().max() < 1e-12


@given(parent_tables(8))
def test_a_shared_parent_is_found_where_there_is_one(table: list[list[int]]) -> None:
    found, length = shared_parent(sih.ParentsTask(P2, table, len(table[0]) - 1)), len(table[0]) - 1
    bad = [
        (i, g, h)
        for (g, first), (h, second) in itertools.combinations(enumerate(table), 2)
        for i in range(length)
        if first[i + 1] == second[i + 1]
        and first[: i + 1] != second[: i + 1]
        and len({r[i + 1] for r in table}) > 1
    ]
    assert (found is None) == (not bad)
    assert found is None or found in bad


def test_tables_that_no_circuit_serves_are_refused() -> None:
    with pytest.raises(
        FieldError, match="token 2 has no parent under hypothesis 1 and one under another"
    ) as caught:
        check_table(sih.ParentsTask(P2, [[-1, 0, 0, 1], [-1, 0, -1, 0]]))
    assert caught.value.field == "parents"
    with pytest.raises(FieldError, match="no token has a parent"):
        check_table(sih.ParentsTask(P2, [[-1, -1]]))


def test_the_fewest_heads_are_those_of_the_last_row_with_a_choice() -> None:
    task = sih.ParentsTask(P2, sih.random_parents(3, 20, rng=0), 20)
    for third in ("parents", "slots"):
        circuit = sih.construct(task, third=third).circuit
        assert circuit.fewest.lower == 5 <= circuit.heads
    tree = sih.ParentsTask(P2, sih.random_parents(1, 20, rng=0), 20)
    assert sih.construct(tree).circuit.fewest.lower == 0


def test_plain_json_gives_the_circuit_again() -> None:
    circuit = sih.construct(sih.ParentsTask(P2, sih.random_parents(2, 9, rng=0), 9)).circuit
    assert read_circuit(circuit.to_dict()) == circuit
    lags = sih.construct(sih.Task(P2, (1, 2), 9)).circuit
    assert isinstance(read_circuit(lags.to_dict()), Circuit)
    with pytest.raises(ValueError, match="a head for each of 9 tokens"):
        read_circuit({**circuit.to_dict(), "head_of_token": [[0, 1]]})


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        *(
            ("beta", float("inf")),
            ("lam", "x"),
            ("length", 0),
            ("length", True),
            ("prior", 1),
            ("target", 3),
        ),
        *(("parents", [[-1, 0, 5]]), ("parents", []), ("parents", [[-1, 0]]), ("parents", "x")),
        *(("head_of_token", [0, 1]), ("head_of_token", [[0.5] * 8]), ("head_of_token", [[-2] * 8])),
        *(
            ("head_of_token", [[0] * 7]),
            ("head_of_token", None),
            ("parents", [[10**30] * 9]),
            ("evidence", None),
        ),
    ],
)
def test_a_strangers_circuit_is_refused_in_one_line(entry: str, value: Any) -> None:
    told = sih.construct(sih.ParentsTask(P2, sih.random_parents(2, 8, rng=0), 8)).notes["circuit"]
    assert read_circuit(told).to_dict() == told
    with pytest.raises(ValueError, match=entry.removesuffix("s")) as error:
        read_circuit({**told, entry: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("entry", ["target", "third", "parents", "length", "evidence", "beta"])
def test_a_circuit_that_lacks_an_entry_is_refused(entry: str) -> None:
    told = sih.construct(sih.ParentsTask(P2, sih.random_parents(2, 8, rng=0), 8)).notes["circuit"]
    with pytest.raises(ValueError, match=f"{entry} is missing"):
        read_circuit({name: value for name, value in told.items() if name != entry})
