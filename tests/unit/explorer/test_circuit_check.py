from __future__ import annotations

import pytest
from support.views import TRAINED

from sih.base.errors import FieldError
from sih.explorer.circuit_check import verdict
from sih.explorer.parse_state import read_state


def test_certificates_hold_and_say_where_they_were_checked() -> None:
    found = verdict(read_state({"length": 40, "models": [{}, {"kind": "bayes"}]}), 1)
    assert found["ok"]
    assert found["length"] == 40
    assert found["posterior_error"] <= found["bound"]
    wide = verdict(read_state({"length": 256, "lags": [1, 2, 3, 4, 5, 6]}), 0)
    assert wide["ok"]
    assert 16 < wide["length"] < 256


@pytest.mark.parametrize("kind", ["relative", "relative-bayes"])
@pytest.mark.parametrize("length", [5, 256])
def test_relative_positions_are_checked_at_the_length_shown(kind: str, length: int) -> None:
    found = verdict(read_state({"length": length, "models": [{"kind": kind}]}), 0)
    assert found["ok"]
    assert found["length"] == length


def test_trained_models_have_no_certificate() -> None:
    with pytest.raises(FieldError, match="no certificate"):
        verdict(read_state(TRAINED), 0)
    with pytest.raises(FieldError, match="number 1"):
        verdict(read_state({}), 1)
