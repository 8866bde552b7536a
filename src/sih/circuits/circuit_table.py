"""The table of circuits, with lookup by name and from a model's notes."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from sih.base.errors import FieldError, described
from sih.circuits.any_circuit import VERSION_0_2, AnyCircuit, CircuitOptions
from sih.circuits.bayes import BayesCircuit
from sih.circuits.circuit import Circuit
from sih.circuits.looking import LookingCircuit
from sih.circuits.narrow import NarrowBayesCircuit
from sih.circuits.paper import PaperCircuit
from sih.circuits.relative import RelativeBayesCircuit, RelativePaperCircuit
from sih.circuits.two_lags import TwoLagCircuit
from sih.models.base import Model

CIRCUITS: dict[str, type[Circuit]] = {
    "paper": PaperCircuit,
    "two-lags": TwoLagCircuit,
    "bayes": BayesCircuit,
    "looking": LookingCircuit,
}
"""Every kind of circuit for lags. A new circuit is a file and a line here."""
AS_STANDARD: dict[str, type[Circuit]] = {"bayes": NarrowBayesCircuit}
"""Circuits as standard transformers, with a width independent of the length."""
RELATIVE: dict[str, type[Circuit]] = {"paper": RelativePaperCircuit, "bayes": RelativeBayesCircuit}
"""Circuits with relative positions, for any length."""
OF_KIND: dict[str, Mapping[str, type[Circuit]]] = {
    "disentangled": CIRCUITS,
    "standard": AS_STANDARD,
    "relative": RELATIVE,
}
"""The circuits available for each `kind` of `construct`."""
OTHERS = {"head_of_token": "sih.beyond.any_parents.parents_table:read_parents_circuit"}
"""Readers of notes on other tasks than lags, by an entry that marks such notes."""

KindT = TypeVar("KindT", bound=AnyCircuit)


def circuits_of(kind: str) -> Mapping[str, type[Circuit]]:
    """Return the circuits that can be written as this kind of model."""
    return OF_KIND[kind.partition("-")[0]]


def circuit_kind(circuits: Mapping[str, type[KindT]], target: object) -> type[KindT]:
    """Return the circuit of this name in a table, or raise a `FieldError`."""
    if not isinstance(target, str) or target not in circuits:
        names = " or ".join(map(repr, circuits))
        raise FieldError("target", f"target is {names}; got {described(target)}")
    return circuits[target]


def option_names(kind: type[AnyCircuit]) -> tuple[str, ...]:
    """Return the names of a circuit's options."""
    return tuple(option.name for option in fields(kind.Options))


def circuit_options(
    circuits: Mapping[str, type[AnyCircuit]], target: str, options: Mapping[str, Any]
) -> CircuitOptions:
    """Return a circuit's options. None leaves a choice to the circuit; unknown names
    are errors.

    >>> circuit_options(CIRCUITS, "two-lags", {"beta": 3.0, "heads": None})
    TwoLagOptions(lam=None, beta=3.0, temper=1.0)
    """
    kind = circuit_kind(circuits, target)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in option_names(kind):
            others = [repr(other) for other in circuits if name in option_names(circuits[other])]
            whose = f" (it is one of {', '.join(others)})" if others else ""
            its = ", ".join(option_names(kind))
            raise FieldError(
                name, f"the circuit {target!r} has no option {name!r}{whose}; its options are {its}"
            )
    return kind.Options(**given)


def read_circuit(notes: Any, kind: str = "disentangled") -> AnyCircuit:
    """Return the circuit that `to_dict` wrote into a model's notes."""
    if not isinstance(notes, Mapping):
        raise FieldError("circuit", f"circuit must be an object; got {described(notes)}")
    for entry, reader in OTHERS.items():
        if entry in notes:
            module, function = reader.split(":")
            found: AnyCircuit = getattr(importlib.import_module(module), function)(notes)
            return found
    own = circuits_of(kind)
    circuits = own if own is RELATIVE else {**CIRCUITS, **own}
    read: AnyCircuit = circuit_kind(circuits, notes.get("target")).from_dict(notes)
    return read


def notes_of_certificate(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes in a certificate of version 0.1, which stored them there.

    Its claims about errors and bounds are ignored.
    """
    numbers = {**record["circuit"], "head_of_offset": record["circuit"]["colours"]}
    known = VERSION_0_2.union(each.name for each in fields(PaperCircuit))
    kept = {name: value for name, value in numbers.items() if name in known}
    return {"circuit": kept, "task": record["task"]}


def circuit_of(model: Model) -> AnyCircuit | None:
    """Return the circuit in a model's notes, or None."""
    if "circuit" not in model.notes:
        return None
    return read_circuit(model.notes["circuit"], model.Shape.kind)
