"""How flags give a transition matrix: as a file, .npy or .csv, or by the law that a random one is drawn by."""

from typing import TYPE_CHECKING, Any

import tyro
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from sih.base.errors import FieldError
from sih.task.matrices import RANDOM

if TYPE_CHECKING:
    MatrixLaw = str
else:
    MatrixLaw = tyro.extras.literal_type_from_choices(RANDOM)

Matrix = tuple[tuple[float, ...], ...]
REGISTRY = ConstructorRegistry()
"""Within it, tyro reads arguments of type `Matrix` from a file."""


@REGISTRY.primitive_rule
def _from_file(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    def is_matrix(value: Any) -> bool:
        return isinstance(value, tuple)

    rule = PrimitiveConstructorSpec(
        1, "FILE", lambda words: read_matrix(words[0]), is_matrix, lambda _: ["P.csv"]
    )
    return rule if info.type == Matrix else None


def check_drawn(law: MatrixLaw) -> None:
    """Raise a FieldError if a law is asked for where the matrix is that of a file."""
    if law != "dirichlet":
        message = f"a matrix of a file is not drawn; leave out --matrix or --matrix-law {law}"
        raise FieldError("matrix_law", message)


def read_matrix(path: str) -> Matrix:
    """Read a transition matrix as plain numbers."""
    from sih.task.matrices import load_transition_matrix

    return tuple(tuple(row) for row in load_transition_matrix(path).tolist())
