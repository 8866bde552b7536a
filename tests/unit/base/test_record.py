"""Errors name the field, in one clear line."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import (
    Above,
    Among,
    AtLeast,
    Below,
    Between,
    Increasing,
    NotEmpty,
    OneOrMore,
    Probability,
    Size,
    check,
    make,
    read,
    read_field,
    required_fields,
    to_json,
)

LAWS = {"dirichlet": 1}


@dataclasses.dataclass(frozen=True)
class Matrix:
    rows: tuple[tuple[Probability, ...], ...] | None = None
    kind: Literal["drawn", "rows"] = "rows"


@dataclasses.dataclass(frozen=True)
class State:
    matrix: Matrix
    states: Annotated[int, Between(2, 10)]
    beta: Annotated[float, Above(0, infinite=True)] = 1.0
    decay: Annotated[float, AtLeast(0), Below(1)] = 0.0
    length: Size = 8
    lags: Annotated[tuple[Size, ...], Increasing()] = (1,)
    names: Annotated[tuple[str, ...], NotEmpty("names, e.g. ['paper']")] = ("paper",)
    law: Annotated[str, Among(LAWS)] = "dirichlet"
    edits: tuple[tuple[int, int], ...] = ()
    race: bool = False
    version: Literal[2] = 2
    notes: dict[str, float] = dataclasses.field(default_factory=dict)
    beside: Any = None

    def __post_init__(self) -> None:
        check(self)
        if len(self.edits) > 3:
            raise FieldError("edits", f"edits are 3 at most; got {len(self.edits)}")
        if self.race and not self.edits:
            raise FieldError("edits", "a race needs edits; leave out race")


def state(**changed: Any) -> State:
    return read(State, {"matrix": {"rows": [[0.5, 0.5]]}, "states": 2, **changed}, "state")


def test_a_record_is_read_and_numbers_become_plain() -> None:
    found = state(edits=[[1, np.int64(2)]], beta=np.float32(2), notes={"a": 1})
    assert found == State(Matrix(((0.5, 0.5),)), 2, edits=((1, 2),), beta=2.0, notes={"a": 1.0})
    assert [type(value) for value in (found.edits[0][1], found.beta, found.notes["a"])] == [
        int,
        float,
        float,
    ]
    assert state(beta=math.inf).beta == math.inf


def test_json_and_back() -> None:
    given = state(edits=[[1, 2]], notes={"a": 0.5})
    assert read(State, json.loads(json.dumps(to_json(given))), "state") == given


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"matrix": {"rows": [[0.5, 1.5]]}},
            "state.matrix.rows.0.1 must be a number from 0 to 1; got 1.5",
        ),
        ({"matrix": {"kind": "x"}}, "state.matrix.kind must be one of drawn, rows; got 'x'"),
        ({"matrix": []}, "state.matrix must be an object; got []"),
        ({"states": 11}, "state.states must be a whole number from 2 to 10; got 11"),
        ({"states": True}, "state.states must be a whole number from 2 to 10; got True"),
        ({"states": 2.5}, "state.states must be a whole number from 2 to 10; got 2.5"),
        ({"beta": math.nan}, "state.beta must be a number greater than 0, or inf; got nan"),
        ({"beta": 0}, "state.beta must be a number greater than 0, or inf; got 0"),
        ({"beta": 10**400}, "state.beta must be a number greater than 0, or inf; got 1000"),
        ({"decay": 1}, "state.decay must be a number below 1; got 1"),
        ({"length": 2**31}, "state.length must be a whole number below 2^31; got 2147483648"),
        ({"length": 0}, "state.length must be a whole number, at least 1; got 0"),
        ({"lags": [1, 0]}, "state.lags.1 must be a whole number, at least 1; got 0"),
        ({"lags": [2, 1]}, "state.lags must be distinct, positive and increasing whole numbers"),
        ({"lags": 3}, "state.lags must be a list; got 3"),
        ({"names": []}, "state.names must be names, e.g. ['paper']; got []"),
        ({"names": "paper"}, "state.names must be a list; got 'paper'"),
        ({"law": "x"}, "state.law must be one of dirichlet; got 'x'"),
        ({"law": []}, "state.law must be one of dirichlet; got []"),
        ({"edits": [[1]]}, "state.edits.0 must be a list of 2; got [1]"),
        ({"edits": [[1, 2]] * 4}, "state.edits are 3 at most; got 4"),
        ({"race": True}, "state: a race needs edits; leave out race"),
        ({"race": 1}, "state.race must be true or false; got 1"),
        ({"version": 3}, "state.version must be 2; got 3"),
        ({"notes": [1]}, "state.notes must be an object; got [1]"),
        ({"notes": {"a": "x"}}, "state.notes.a must be a number; got 'x'"),
        ({"colour": 1}, "state.colour is no field; there are matrix, states, beta"),
    ],
)
def test_errors_name_the_place(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as error:
        state(**changed)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_an_error_knows_its_place() -> None:
    with pytest.raises(FieldError) as error:
        state(matrix={"rows": [[2]]})
    assert error.value.field == "state.matrix.rows.0.0"
    with pytest.raises(FieldError) as error:
        state(race=True)
    assert error.value.field == "state.edits"


def test_a_missing_field_is_named() -> None:
    assert required_fields(State) == ("matrix", "states")
    with pytest.raises(FieldError, match=r"^state\.states is missing, without which there is no"):
        read(State, {"matrix": {}}, "state")


def test_python_callers_are_held_to_the_same() -> None:
    assert State(Matrix(), states=2, edits=[[1, 2]]).edits == ((1, 2),)  # type: ignore[arg-type]
    with pytest.raises(FieldError, match=r"^states must be a whole number from 2 to 10; got 1$"):
        State(Matrix(), states=1)
    with pytest.raises(FieldError, match=r"^states is missing"):
        make(State, {"matrix": Matrix()})


@dataclasses.dataclass(frozen=True, eq=False)
class Curves:
    mean: Float[Tensor, "curve position"]
    error: Float[Tensor, "curve position"] | None = None


def test_tensors_are_held_to_their_shape_and_axes_to_one_size() -> None:
    found = read(Curves, {"mean": torch.zeros(2, 3), "error": torch.zeros(2, 3)}, "data")
    assert found.mean.shape == (2, 3)
    with pytest.raises(FieldError, match=r"^data\.mean must be numbers .*shape \(3,\)$"):
        read(Curves, {"mean": torch.zeros(3)}, "data")
    with pytest.raises(FieldError, match=r"^data\.error must be numbers .*shape \(2, 4\)$"):
        read(Curves, {"mean": torch.zeros(2, 3), "error": torch.zeros(2, 4)}, "data")
    assert read(Curves, {"mean": torch.zeros(4, 1)}, "data").error is None


def test_axes_of_two_records_are_apart() -> None:
    first = read(Curves, {"mean": torch.zeros(2, 3)}, "data")
    second = read(Curves, {"mean": torch.zeros(5, 1)}, "data")
    assert (len(first.mean), len(second.mean)) == (2, 5)


@dataclasses.dataclass(frozen=True)
class Words:
    words: Annotated[tuple[str, ...], OneOrMore()] = ("paper",)
    share: float = 0.0

    def __post_init__(self) -> None:
        check(self)


def test_a_word_alone_is_a_list_of_one_where_that_is_said() -> None:
    assert make(Words, {"words": "looking"}) == make(Words, {"words": ["looking"]})
    assert read_field(Words, "words", "looking") == ("looking",)
    for wrong in ([], 3, [3]):
        with pytest.raises(FieldError, match="words") as error:
            read_field(Words, "words", wrong)
        assert "\n" not in str(error.value)


def test_equal_numbers_have_one_form() -> None:
    assert str(make(Words, {"share": -0.0}).share) == str(Words(share=0).share) == "0.0"
