"""How a flag gives a transition matrix: as a file, .npy or .csv."""

from typing import Any

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

Matrix = tuple[tuple[float, ...], ...]
REGISTRY = ConstructorRegistry()
"""Within it, tyro reads arguments of type `Matrix` from a file."""


@REGISTRY.primitive_rule
def _from_file(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    def is_matrix(value: Any) -> bool:
        return isinstance(value, tuple)

    rule = PrimitiveConstructorSpec(1, "FILE", lambda words: read_matrix(words[0]), is_matrix, lambda _: ["P.csv"])
    return rule if info.type == Matrix else None


def read_matrix(path: str) -> Matrix:
    """Read a transition matrix as plain numbers."""
    from sih.markov import load_transition_matrix

    return tuple(tuple(row) for row in load_transition_matrix(path).tolist())
