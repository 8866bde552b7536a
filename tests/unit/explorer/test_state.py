from __future__ import annotations

from typing import Any

import pytest

import sih
from sih.checks import FieldError
from sih.explorer.parse_state import read_state


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"rows": [[0.5, 0.6], [0.5, 0.5]]}, "row 0 sums to 1.1"),
        ({"rows": [[1.0, 0.0], [0.0, 1.0]]}, "irreducible"),
        ({"rows": [[0.5, 0.5, 0.0]] * 3}, "never"),
    ],
)
def test_rows_that_are_no_chain_are_explained_at_the_matrix(matrix: dict[str, Any], words: str) -> None:
    state = read_state({"matrix": matrix, "states": len(matrix["rows"])})
    with pytest.raises(FieldError, match=words) as found:
        state.task()
    assert found.value.field == "matrix"


def test_rows_must_be_as_many_as_states() -> None:
    with pytest.raises(FieldError, match="2 rows, but there are 5 states"):
        read_state({"matrix": {"rows": [[0.5, 0.5], [0.5, 0.5]]}}).task()


@pytest.mark.parametrize("kind", ["dirichlet", "doubly-stochastic", "sparse", "near-periodic", "sticky", "cycle"])
@pytest.mark.parametrize("count", [2, 10])
def test_every_kind_of_matrix_is_a_chain(kind: str, count: int) -> None:
    P = read_state({"matrix": {"kind": kind}, "states": count}).task().P
    sih.as_transition_matrix(P)


def test_sticky_stays_and_cycle_goes_on() -> None:
    assert read_state({"matrix": {"kind": "sticky"}}).task().P.argmax(dim=1).tolist() == [0, 1, 2, 3, 4]
    assert read_state({"matrix": {"kind": "cycle"}}).task().P.argmax(dim=1).tolist() == [1, 2, 3, 4, 0]
