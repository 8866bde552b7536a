"""States of the page from JSON and from addresses: every entry is checked, and errors
name the entry.

A fragment lists a state's entries as `name=JSON` pairs, without those of a first visit:
`#lags=[1,3]&seed=4`. The page writes and reads the same (`static/state.js`).
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import quote

from sih.base.errors import FieldError
from sih.explorer.state import (
    LAGS,
    LENGTH,
    PRESETS,
    SEED,
    STATES,
    TRAINED,
    Matrix,
    ModelChoice,
    State,
    shown_circuits,
    to_json,
)
from sih.task.matrices import RANDOM


def read_state(value: object) -> State:
    """Return a state from JSON; raise a `FieldError` that names the invalid entry,
    whatever is wrong with it.
    """
    given = _entries("state", value, State)
    lags = _numbers("lags", given.get("lags", [1, 2, 3]), 1, LAGS)
    if sorted(set(lags)) != lags or not lags:
        raise FieldError(
            "lags",
            f"lags are distinct and increasing, at least one, e.g. [1, 2, 3]; got {_short(lags)}",
        )
    value = {**vars(State()), **given}
    states = _whole("states", value["states"], 2, STATES)
    length = _whole("length", value["length"], 2, LENGTH)
    if length <= lags[-1]:
        raise FieldError(
            "length",
            f"the sequence must be longer than the largest lag, {lags[-1]}; got length {length}",
        )
    query = given.get("query")
    state = State(
        lags=tuple(lags),
        states=states,
        length=length,
        matrix=_matrix(given.get("matrix", {})),
        seed=_whole("seed", value["seed"], 0, SEED),
        edits=_edits(given.get("edits", []), length, states),
        models=_models(given.get("models", [{}])),
        query=None if query is None else _whole("query", query, 0, length - 1),
        revealed=value["revealed"],
        zoom=_whole("zoom", value["zoom"], 1, 32),
        arcs=value["arcs"],
        race=value["race"],
        speed=_real("speed", value["speed"], 0, 5),
        offset=_whole("offset", value["offset"], 0, LENGTH - 1),
    )
    if not isinstance(state.revealed, bool):
        raise FieldError("revealed", f"revealed is true or false; got {_short(state.revealed)}")
    if not isinstance(state.arcs, str) or not re.fullmatch(
        r"all|[1-9]\d?(\.[1-9]\d?)?", state.arcs, re.ASCII
    ):
        raise FieldError(
            "arcs", f"arcs are 'all', a layer's, '3', or a head's, '2.1'; got {_short(state.arcs)}"
        )
    if state.race not in ("weight", "evidence"):
        raise FieldError("race", f"race is 'weight' or 'evidence'; got {_short(state.race)}")
    return state


def fragment(state: State) -> str:
    """Return a state as the fragment of an address.

    >>> fragment(State(lags=(1, 3), seed=4))
    'lags=[1,3]&seed=4'
    """
    entries = to_json(state).items()
    return "&".join(
        f"{name}={quote(json.dumps(entry, separators=(',', ':')), safe='[],:')}"
        for name, entry in entries
    )


def _matrix(value: object) -> Matrix:
    given = _entries("matrix", value, Matrix)
    kind = given.get("kind", "rows" if given.get("rows") is not None else Matrix.kind)
    kinds = (*RANDOM, *PRESETS, "rows")
    if kind not in kinds:
        raise FieldError(
            "matrix", f"the kind of matrix is one of {', '.join(kinds)}; got {_short(kind)}"
        )
    rows = given.get("rows")
    if (kind == "rows") != (rows is not None):
        raise FieldError("matrix", "rows go with the kind 'rows', and only with it")
    if rows is not None:
        if (
            not isinstance(rows, list)
            or not 2 <= len(rows) <= STATES
            or not all(isinstance(r, list) for r in rows)
        ):
            raise FieldError(
                "matrix", f"rows are 2 to {STATES} lists of probabilities; got {_short(rows)}"
            )
        if any(len(row) != len(rows) for row in rows):
            raise FieldError(
                "matrix",
                f"{len(rows)} rows have {len(rows)} probabilities each; got {_short(rows)}",
            )
        rows = tuple(tuple(_real("matrix", p, 0.0, 1.0) for p in row) for row in rows)
    seed = _whole("matrix.seed", given.get("seed", Matrix.seed), 0, SEED)
    concentration = given.get("concentration", Matrix.concentration)
    return Matrix(kind, seed, _real("matrix.concentration", concentration, 0.01, 1000.0), rows)


def _models(value: object) -> tuple[ModelChoice, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        raise FieldError("models", f"models are a list of one or two; got {_short(value)}")
    return tuple(_model(f"models.{index}", entry) for index, entry in enumerate(value))


def _model(where: str, value: object) -> ModelChoice:
    given = _entries(where, value, ModelChoice)
    kind, evidence, name = (
        given.get("kind", "paper"),
        given.get("evidence", "mean"),
        given.get("name"),
    )
    kinds = (*shown_circuits(), TRAINED)
    if kind not in kinds:
        raise FieldError(where, f"the model is one of {', '.join(kinds)}; got {_short(kind)}")
    if evidence not in ("mean", "sum"):
        raise FieldError(
            f"{where}.evidence", f"evidence is 'mean' or 'sum'; got {_short(evidence)}"
        )
    if (kind == TRAINED) != isinstance(name, str) or (
        name is not None and not isinstance(name, str)
    ):
        raise FieldError(where, "a trained model is chosen by name, and only a trained one")

    def slider(of: str, low: float, high: float) -> float | None:
        return None if given.get(of) is None else _real(f"{where}.{of}", given[of], low, high)

    heads = (
        None if given.get("heads") is None else _whole(f"{where}.heads", given["heads"], 1, LAGS)
    )
    lam, beta, temper = (
        slider("lam", 0.1, 1e6),
        slider("beta", 0.01, 1e6),
        slider("temper", 1e-9, 10.0),
    )
    return ModelChoice(
        kind, name, heads, lam, beta, temper, slider("looking", 1e-6, 10.0), evidence
    )


def _edits(value: object, length: int, states: int) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or len(value) > LENGTH:
        raise FieldError(
            "edits", f"edits are at most {LENGTH} pairs [position, state]; got {_short(value)}"
        )
    pairs = []
    for pair in value:
        if not isinstance(pair, list) or len(pair) != 2:
            raise FieldError("edits", f"an edit is a pair [position, state]; got {_short(pair)}")
        pairs.append(
            (_whole("edits", pair[0], 0, length - 1), _whole("edits", pair[1], 0, states - 1))
        )
    if len({position for position, _ in pairs}) < len(pairs):
        raise FieldError("edits", "a position is changed once")
    return tuple(sorted(pairs))


def _entries(where: str, value: object, kind: type) -> Mapping[str, Any]:
    known = [entry.name for entry in fields(kind)]
    if not isinstance(value, dict):
        raise FieldError(
            where, f"{where} is an object with the entries {', '.join(known)}; got {_short(value)}"
        )
    unknown = sorted(value.keys() - set(known))
    if unknown:
        raise FieldError(
            where, f"{where} has no entry {_short(unknown[0])}; it has {', '.join(known)}"
        )
    return value


def _numbers(where: str, value: object, low: int, high: int) -> list[int]:
    if not isinstance(value, list) or len(value) > high:
        raise FieldError(
            where, f"{where} is a list of whole numbers from {low} to {high}; got {_short(value)}"
        )
    return [_whole(where, entry, low, high) for entry in value]


def _whole(where: str, value: object, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise FieldError(
            where, f"{_last(where)} is a whole number from {low} to {high}; got {_short(value)}"
        )
    return value


def _real(where: str, value: object, low: float, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise FieldError(
            where, f"{_last(where)} is a number from {low:g} to {high:g}; got {_short(value)}"
        )
    return float(value) if math.isfinite(value) else low


def _last(where: str) -> str:
    return {"matrix": "a probability", "edits": "an edit's entry", "lags": "a lag"}.get(
        where, where.rpartition(".")[2]
    )


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
