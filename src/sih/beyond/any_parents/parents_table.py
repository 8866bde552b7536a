"""The table of circuits for any parents, and one read from a model's notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sih.beyond.any_parents.parents_circuit import ParentsCircuit
from sih.beyond.any_parents.targets import BayesParentsCircuit, PaperParentsCircuit
from sih.circuits.any_circuit import AnyCircuit
from sih.circuits.circuit_table import circuit_kind

PARENTS_CIRCUITS: dict[str, type[ParentsCircuit]] = {
    "paper": PaperParentsCircuit,
    "bayes": BayesParentsCircuit,
}
"""Every kind of circuit for a table of parents."""


def read_parents_circuit(notes: Mapping[str, Any]) -> AnyCircuit:
    """Return the circuit that `ParentsCircuit.to_dict` wrote into a model's notes."""
    return circuit_kind(PARENTS_CIRCUITS, notes.get("target")).from_dict(notes)
