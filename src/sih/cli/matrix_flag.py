"""How a flag gives a transition matrix: as a file, .npy or .csv."""

from __future__ import annotations

from typing import Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

Matrix = tuple[tuple[float, ...], ...]
REGISTRY = ConstructorRegistry()
"""Within it, tyro reads arguments of type `Matrix` from a file."""


@REGISTRY.primitive_rule
def _from_file(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    if info.type != Matrix:
        return None
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar="FILE",
        instance_from_str=lambda words: read_matrix(words[0]),
        is_instance=lambda value: isinstance(value, tuple),
        str_from_instance=lambda _: ["P.csv"],
    )


def read_matrix(path: str) -> Matrix:
    """Read a transition matrix as plain numbers."""
    from sih.markov import load_transition_matrix

    return tuple(tuple(row) for row in load_transition_matrix(path).tolist())
