"""What is asked of the paper's circuit, and its third layer."""

from __future__ import annotations

import pytest

import sih
from sih.base.errors import FieldError
from sih.circuits.circuit_table import read_circuit
from sih.circuits.paper import choose_third


def test_the_mask_form_is_taken_where_it_can_be() -> None:
    assert choose_third(None, (0, 1, 2), sink=False) == "mask"
    assert choose_third(None, (0, 1, 2), sink=True) == "position"
    assert choose_third(None, (0, 1, 0, 1), sink=False) == "position"
    with pytest.raises(FieldError, match="not with a sink"):
        choose_third("mask", (0, 1, 2), sink=True)


@pytest.mark.parametrize("heads", [[], [-1, -1]])
def test_a_file_without_a_head_is_refused_when_it_is_read(heads: list[int]) -> None:
    told = sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 16)).notes["circuit"]
    with pytest.raises(FieldError, match=r"circuit\.head_of_offset must have a head") as caught:
        read_circuit({**told, "head_of_offset": heads})
    assert caught.value.field == "circuit.head_of_offset"
