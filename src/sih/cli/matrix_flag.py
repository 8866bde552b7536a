"""Flags for a transition matrix: a file, .npy or .csv, or the distribution of a random
one.
"""

import dataclasses
import re
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
"""Registry with which tyro reads arguments of type `Matrix` from a file."""


@REGISTRY.primitive_rule
def _from_file(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    def is_matrix(value: Any) -> bool:
        return isinstance(value, tuple)

    rule = PrimitiveConstructorSpec(
        1, "FILE", lambda words: read_matrix(words[0]), is_matrix, lambda _: ["P.csv"]
    )
    return rule if info.type == Matrix else None


@REGISTRY.primitive_rule
def _readable(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Return tyro's own rule for optional or repeated values, with a readable metavar."""
    global _asking
    if _asking or info.type == Matrix:
        return None
    _asking = True
    try:
        found = ConstructorRegistry.get_primitive_spec(info)
    finally:
        _asking = False
    if not isinstance(found, PrimitiveConstructorSpec):
        return None
    return dataclasses.replace(found, metavar=readable(found.metavar))


_asking = False
"""Whether tyro is currently evaluating its own rule."""


def readable(metavar: str) -> str:
    """Return the name of a value in the help: without None, and with dots for several.

    >>> readable("{None}|PATH"), readable("[INT [INT ...]]"), readable("{None}|{[FLOAT [FLOAT ...]]}")
    ('PATH', 'INT ...', 'FLOAT ...')
    >>> readable("{None,mean,sum}"), readable("{dirichlet,uniform}")
    ('{mean,sum}', '{dirichlet,uniform}')
    """
    text = metavar.replace("{None}|", "").replace("{None,", "{")
    several = re.fullmatch(r"\{?\[(.+) \[\1 \.\.\.\]\]\}?", text)
    return f"{several[1]} ..." if several else text


def check_drawn(law: MatrixLaw) -> None:
    """Raise a FieldError if a distribution is given together with a matrix file."""
    if law != "dirichlet":
        message = f"a matrix of a file is not drawn; leave out --matrix or --matrix-law {law}"
        raise FieldError("matrix_law", message)


def read_matrix(path: str) -> Matrix:
    """Return a transition matrix as plain numbers."""
    from sih.task.matrices import load_transition_matrix

    return tuple(tuple(row) for row in load_transition_matrix(path).tolist())
