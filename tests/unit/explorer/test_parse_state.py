from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.addresses import from_fragment

from sih.base.errors import FieldError
from sih.explorer.parse_state import fragment, read_state
from sih.explorer.state import Matrix, ModelChoice, State, to_json

CHOICES = st.one_of(
    st.builds(
        ModelChoice,
        kind=st.sampled_from(
            ["paper", "mask", "position", "fewer", "two-lags", "bayes", "both", "looking"]
        ),
        heads=st.none() | st.integers(1, 16),
        lam=st.none() | st.floats(1, 1e5),
        beta=st.none() | st.floats(0.1, 1e5),
        temper=st.none() | st.floats(0.01, 5),
        looking=st.none() | st.floats(0.01, 10),
        evidence=st.sampled_from(["mean", "sum"]),
    ),
    st.builds(ModelChoice, kind=st.just("trained"), name=st.text(max_size=12)),
)


@st.composite
def states(draw: st.DrawFn) -> State:
    lags = tuple(sorted(draw(st.sets(st.integers(1, 16), min_size=1, max_size=6))))
    count, length = draw(st.integers(2, 10)), draw(st.integers(lags[-1] + 1, 256))
    rows = tuple(tuple(1 / count for _ in range(count)) for _ in range(count))
    matrix = draw(
        st.builds(
            Matrix,
            st.sampled_from(["dirichlet", "uniform", "sparse", "cycle"]),
            st.integers(0, 2**53 - 1),
            st.floats(0.1, 9),
        )
        | st.just(Matrix("rows", rows=rows))
    )
    edited = draw(st.sets(st.integers(0, length - 1), max_size=5))
    return State(
        lags,
        count,
        length,
        matrix,
        draw(st.integers(0, 2**53 - 1)),
        tuple((position, draw(st.integers(0, count - 1))) for position in sorted(edited)),
        tuple(draw(st.lists(CHOICES, min_size=1, max_size=2))),
        draw(st.none() | st.integers(0, length - 1)),
        draw(st.booleans()),
        draw(st.integers(1, 16)),
        draw(st.sampled_from(["all", "3", "2.1"])),
        offset=draw(st.integers(0, 255)),
    )


@given(states())
def test_a_state_survives_json_and_its_address(state: State) -> None:
    assert read_state(json.loads(json.dumps(to_json(state)))) == state
    assert read_state(json.loads(json.dumps(asdict(state)))) == state
    assert from_fragment("#" + fragment(state)) == state


def test_the_first_visit_needs_no_words() -> None:
    assert read_state({}) == State()
    assert fragment(State()) == ""


BAD: dict[str, tuple[Any, str, str]] = {
    "no object": ([], "state", "got []"),
    "unknown entry": ({"lag": 1}, "state", "no entry 'lag'"),
    "no lags": ({"lags": []}, "lags", "at least one"),
    "lags twice": ({"lags": [1, 1]}, "lags", "got [1, 1]"),
    "lags falling": ({"lags": [3, 1]}, "lags", "increasing"),
    "lag too large": ({"lags": [17]}, "lags", "from 1 to 16; got 17"),
    "lag true": ({"lags": [True]}, "lags", "got True"),
    "lag beyond the length": (
        {"lags": [9], "length": 9},
        "length",
        "longer than the largest lag, 9; got length 9",
    ),
    "length": ({"length": 257}, "length", "from 2 to 256; got 257"),
    "states": ({"states": 5.0}, "states", "got 5.0"),
    "seed": ({"seed": 2**53}, "seed", "whole number"),
    "huge": ({"seed": 10**300}, "seed", "..."),
    "kind": ({"matrix": {"kind": "round"}}, "matrix", "got 'round'"),
    "kind of no type": ({"matrix": {"kind": {}}}, "matrix", "got {}"),
    "concentration": ({"matrix": {"concentration": 0}}, "matrix.concentration", "got 0"),
    "rows without kind": (
        {"matrix": {"kind": "sparse", "rows": [[1.0]]}},
        "matrix",
        "only with it",
    ),
    "ragged": ({"matrix": {"rows": [[0.5, 0.5], [1.0]]}}, "matrix", "2 probabilities each"),
    "negative": ({"matrix": {"rows": [[1.5, -0.5], [0.5, 0.5]]}}, "matrix", "from 0 to 1; got 1.5"),
    "edit outside": ({"edits": [[128, 0]]}, "edits", "from 0 to 127; got 128"),
    "edit no state": ({"edits": [[0, 5]]}, "edits", "from 0 to 4; got 5"),
    "edit twice": ({"edits": [[0, 1], [0, 2]]}, "edits", "once"),
    "no models": ({"models": []}, "models", "one or two"),
    "three models": ({"models": [{}, {}, {}]}, "models", "one or two"),
    "model": ({"models": [{}, {"kind": "magic"}]}, "models.1", "got 'magic'"),
    "trained without a name": ({"models": [{"kind": "trained"}]}, "models.0", "by name"),
    "name without trained": ({"models": [{"name": "x"}]}, "models.0", "by name"),
    "beta": ({"models": [{"beta": -1}]}, "models.0.beta", "got -1"),
    "beta a word": ({"models": [{"beta": "inf"}]}, "models.0.beta", "got 'inf'"),
    "lam": ({"models": [{"lam": 1e7}]}, "models.0.lam", "got 10000000"),
    "temper": ({"models": [{"temper": None, "evidence": "max"}]}, "models.0.evidence", "got 'max'"),
    "looking": (
        {"models": [{"kind": "looking", "looking": 11}]},
        "models.0.looking",
        "from 1e-06 to 10; got 11",
    ),
    "looking a list": ({"models": [{"looking": [1]}]}, "models.0.looking", "got [1]"),
    "heads": (
        {"models": [{"kind": "both", "heads": 17}]},
        "models.0.heads",
        "from 1 to 16; got 17",
    ),
    "heads half": ({"models": [{"kind": "both", "heads": 1.5}]}, "models.0.heads", "got 1.5"),
    "reading": (
        {"models": [{"kind": "bayes", "reading": "both"}]},
        "models.0",
        "no entry 'reading'",
    ),
    "offset": ({"offset": 256}, "offset", "from 0 to 255; got 256"),
    "offset true": ({"offset": True}, "offset", "got True"),
    "query": ({"query": 128}, "query", "from 0 to 127"),
    "revealed": ({"revealed": 1}, "revealed", "true or false"),
    "arcs": ({"arcs": "3/../x"}, "arcs", "'2.1'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_entry_and_quotes_the_value(case: str) -> None:
    value, field, words = BAD[case]
    with pytest.raises(FieldError) as found:
        read_state(value)
    assert found.value.field == field
    assert words in str(found.value)
    assert "\n" not in str(found.value)
