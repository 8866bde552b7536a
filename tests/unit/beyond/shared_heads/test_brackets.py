from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sih.beyond.shared_heads.brackets import (
    EXACT,
    LENGTH,
    STARTS,
    TABLE,
    Bracket,
    normal_form,
    read_brackets,
)


def test_sets_with_the_same_numbers_have_one_form() -> None:
    assert normal_form((1, 3, 4)) == normal_form((2, 3, 5)) == normal_form((3, 7, 9)) == (1, 2, 4)
    assert normal_form((1, 2, 3)) == (1, 2, 3)
    assert normal_form((5,)) == (1,)


def test_a_bracket_counts_what_is_exact() -> None:
    found = Bracket((1, 2, 5), 4, 4, 2, {3: EXACT / 10, 2: 0.4}, {2: EXACT / 2, 1: 0.01})
    assert (found.query_heads, found.both_heads) == (3, 2)
    assert Bracket((1, 2, 5), 4, 4, 2, {}, {}).both_heads == 4


def test_the_kept_table_says_how_it_was_searched() -> None:
    kept = json.loads(TABLE.read_text())
    assert (kept["length"], kept["starts"], kept["exact"]) == (LENGTH, STARTS, EXACT)


def test_a_table_is_read_back(tmp_path: Path) -> None:
    row = {
        "lags": [1, 2, 5],
        "unmixed": 4,
        "closed": 4,
        "lower": 2,
        "query": {"3": 1e-9},
        "both": {},
    }
    (tmp_path / "t.json").write_text(json.dumps({"brackets": [row]}))
    assert read_brackets(tmp_path / "t.json") == [Bracket((1, 2, 5), 4, 4, 2, {3: 1e-9}, {})]


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("lags", [2, 1]),
        ("lags", 3),
        ("lower", 0),
        ("lower", "2"),
        ("query", {"x": 1}),
        ("both", {"1": None}),
    ],
)
def test_a_damaged_table_is_refused_in_one_line(tmp_path: Path, entry: str, value: Any) -> None:
    row = {
        "lags": [1, 2, 5],
        "unmixed": 4,
        "closed": 4,
        "lower": 2,
        "query": {"3": 1e-9},
        "both": {},
    }
    tables: list[Any] = [
        {"brackets": [{**row, entry: value}]},
        {"brackets": [{n: row[n] for n in row if n != entry}]},
    ]
    for table in (*tables, [], 1):
        (tmp_path / "t.json").write_text(json.dumps(table))
        with pytest.raises(ValueError, match=r"t\.json is no table of brackets") as error:
            read_brackets(tmp_path / "t.json")
        assert "\n" not in str(error.value)
