"""Circuits for any parents, read from the notes of a model: anybody's file."""

from __future__ import annotations

from typing import Any

import pytest

import sih
from sih.circuits import Circuit
from sih.circuits.circuit_table import read_circuit

P2 = [[0.9, 0.1], [0.5, 0.5]]


def test_plain_json_gives_the_circuit_again() -> None:
    circuit = sih.construct_parents(sih.ParentsTask(P2, sih.random_parents(2, 9, rng=0), 9)).circuit
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
    told = sih.construct_parents(sih.ParentsTask(P2, sih.random_parents(2, 8, rng=0), 8)).notes[
        "circuit"
    ]
    assert read_circuit(told).to_dict() == told
    with pytest.raises(ValueError, match=entry.removesuffix("s")) as error:
        read_circuit({**told, entry: value})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("entry", ["target", "third", "parents", "length", "evidence", "beta"])
def test_a_circuit_that_lacks_an_entry_is_refused(entry: str) -> None:
    told = sih.construct_parents(sih.ParentsTask(P2, sih.random_parents(2, 8, rng=0), 8)).notes[
        "circuit"
    ]
    with pytest.raises(ValueError, match=f"{entry} is (missing|'paper')"):
        read_circuit({name: value for name, value in told.items() if name != entry})
