from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
import torch

from sih.base.errors import (
    FieldError,
    check_choice,
    check_device,
    check_fields,
    check_sizes,
    check_tokens,
)


def test_an_error_knows_its_field() -> None:
    with pytest.raises(
        FieldError, match=r"dim must be a whole number, at least 1; got 0"
    ) as caught:
        check_sizes(length=3, dim=0)
    assert caught.value.field == "dim"
    with pytest.raises(FieldError, match="init must be one of zeros, random; got 'ones'") as caught:
        check_choice("init", "ones", ("zeros", "random"))
    assert caught.value.field == "init"
    with pytest.raises(FieldError, match="tokens must be states 0 to 1; got 2") as caught:
        check_tokens(torch.tensor([[0, 2]]), 2, 8)
    assert caught.value.field == "tokens"


def test_an_error_keeps_its_field_between_processes() -> None:
    passed = pickle.loads(pickle.dumps(FieldError("lam", "lam is positive; got 0")))
    assert (type(passed), passed.field, str(passed)) == (
        FieldError,
        "lam",
        "lam is positive; got 0",
    )


@dataclasses.dataclass
class Record:
    count: int
    share: float
    names: tuple[str, ...]
    table: dict[str, int] | None = None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 1.5}, "count must be a whole number; got 1.5"),
        ({"count": True}, "count must be a whole number; got True"),
        ({"share": "x"}, "share must be a number; got 'x'"),
        ({"share": False}, "share must be a number; got False"),
        ({"names": ["a"]}, r"names must be a tuple; got \['a'\]"),
        ({"names": ("a", 1)}, r"names must be a tuple; got \('a', 1\)"),
        ({"table": 3}, "table must be a dict or None; got 3"),
        ({"table": int}, "table must be a dict or None; got the class int"),
    ],
)
def test_fields_are_of_their_classes(changes: dict[str, Any], message: str) -> None:
    right: dict[str, Any] = {"count": 1, "share": 2, "names": ("a",)}
    check_fields(Record(**right))
    check_fields(Record(**right, table={"a": 1}))
    record = Record(**right)
    vars(record).update(changes)
    with pytest.raises(FieldError, match=f"^{message}$") as caught:
        check_fields(record)
    assert caught.value.field in changes


@pytest.mark.parametrize("device", ["abacus", "meta", 1.5, None, torch.device("meta")])
def test_a_device_that_cannot_compute(device: Any) -> None:
    with pytest.raises(
        FieldError, match="device is cpu, or cuda where there is one; cannot compute on"
    ):
        check_device(device)
    assert check_device("cpu") == check_device(torch.device("cpu")) == torch.device("cpu")
