from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import sih
from sih.base.errors import FieldError
from sih.explorer.parse_state import read_state
from sih.explorer.state import PRESETS
from sih.task.matrices import RANDOM, has_concentration

STATIC = Path(sih.__file__).parent / "explorer" / "static"


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ({"rows": [[0.5, 0.6], [0.5, 0.5]]}, "row 0 sums to 1.1"),
        ({"rows": [[1.0, 0.0], [0.0, 1.0]]}, "irreducible"),
        ({"rows": [[0.5, 0.5, 0.0]] * 3}, "never"),
    ],
)
def test_rows_that_are_no_chain_are_explained_at_the_matrix(
    matrix: dict[str, Any], words: str
) -> None:
    state = read_state({"matrix": matrix, "states": len(matrix["rows"])})
    with pytest.raises(FieldError, match=words) as found:
        state.task()
    assert found.value.field == "matrix"


def test_rows_must_be_as_many_as_states() -> None:
    with pytest.raises(FieldError, match="2 rows, but there are 5 states"):
        read_state({"matrix": {"rows": [[0.5, 0.5], [0.5, 0.5]]}}).task()


@pytest.mark.parametrize("kind", [*RANDOM, "sticky", "cycle"])
@pytest.mark.parametrize("count", [2, 10])
def test_every_kind_of_matrix_is_a_chain(kind: str, count: int) -> None:
    P = read_state({"matrix": {"kind": kind}, "states": count}).task().P
    sih.as_transition_matrix(P)


def test_a_uniform_matrix_is_that_of_its_seed() -> None:
    shown = read_state({"matrix": {"kind": "uniform", "seed": 11}}).task().P
    assert torch.equal(shown, sih.as_transition_matrix(sih.random_uniform(5, rng=11)))


def test_a_uniform_matrix_has_no_concentration() -> None:
    with pytest.raises(FieldError, match="the law uniform has no concentration") as found:
        read_state({"matrix": {"kind": "uniform", "concentration": 0.5}}).task()
    assert found.value.field == "matrix"


def test_the_page_offers_every_kind_of_matrix() -> None:
    options = re.search(
        r'<select id="matrix-kind">(.*?)</select>', (STATIC / "index.html").read_text(), re.DOTALL
    )
    assert options is not None
    assert re.findall(r'value="([^"]+)"', options[1]) == [*RANDOM, *PRESETS, "rows"]


def test_the_page_knows_which_laws_have_a_concentration() -> None:
    listed = re.search(r"const concentrated = \[(.*?)\]", (STATIC / "controls.js").read_text())
    assert listed is not None
    assert re.findall(r'"([^"]+)"', listed[1]) == [law for law in RANDOM if has_concentration(law)]


def test_sticky_stays_and_cycle_goes_on() -> None:
    assert read_state({"matrix": {"kind": "sticky"}}).task().P.argmax(dim=1).tolist() == [
        0,
        1,
        2,
        3,
        4,
    ]
    assert read_state({"matrix": {"kind": "cycle"}}).task().P.argmax(dim=1).tolist() == [
        1,
        2,
        3,
        4,
        0,
    ]
