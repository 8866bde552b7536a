"""The door of circuits for any parents, and what the door of lags says of them."""

from __future__ import annotations

import pytest

import sih
from sih.base.errors import FieldError
from sih.beyond.any_parents import ParentsCircuit

TABLE = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], sih.random_parents(2, 9, rng=0), 9)


def test_each_task_has_its_door() -> None:
    assert isinstance(sih.construct_parents(TABLE).circuit, ParentsCircuit)
    with pytest.raises(FieldError, match=r"construct is for lags; sih\.construct_parents\(task\)"):
        sih.construct(TABLE)  # type: ignore[call-overload]


def test_a_circuit_for_lags_is_not_held_to_a_table() -> None:
    model = sih.construct(sih.Task(TABLE.P, (1, 2), 9))
    with pytest.raises(ValueError, match="a task of the circuit's kind, a Task; got"):
        sih.verify(model, TABLE)
