"""Which tables a circuit can be written for."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from support.strategies import parent_tables

import sih
from sih.base.errors import FieldError
from sih.beyond.any_parents.tables import check_table, shared_parent

P2 = [[0.9, 0.1], [0.5, 0.5]]


@given(parent_tables(8))
def test_a_shared_parent_is_found_where_there_is_one(table: list[list[int]]) -> None:
    found, length = shared_parent(sih.ParentsTask(P2, table, len(table[0]) - 1)), len(table[0]) - 1
    bad = [
        (i, g, h)
        for (g, first), (h, second) in itertools.combinations(enumerate(table), 2)
        for i in range(length)
        if first[i + 1] == second[i + 1]
        and first[: i + 1] != second[: i + 1]
        and len({r[i + 1] for r in table}) > 1
    ]
    assert (found is None) == (not bad)
    assert found is None or found in bad


def test_tables_that_no_circuit_serves_are_refused() -> None:
    with pytest.raises(
        FieldError, match="token 2 has no parent under hypothesis 1 and one under another"
    ) as caught:
        check_table(sih.ParentsTask(P2, [[-1, 0, 0, 1], [-1, 0, -1, 0]]))
    assert caught.value.field == "parents"
    with pytest.raises(FieldError, match="no token has a parent"):
        check_table(sih.ParentsTask(P2, [[-1, -1]]))
