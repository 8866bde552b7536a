"""Data through its two files: nothing changes on the way, and damage is found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float, Int
from support.pictures import same
from torch import Tensor

from sih.base.errors import FieldError
from sih.results.data import (
    arrays_file,
    as_lists,
    data_file,
    packed,
    read_about,
    read_data,
    unpacked,
    write_data,
)


@dataclass(frozen=True)
class Inner:
    lags: tuple[int, ...] = (1, 2)


@dataclass(frozen=True, eq=False)
class Outer:
    config: Inner
    kl: dict[str, Float[Tensor, " position"]]
    counts: Int[Tensor, "row column"]
    seen: Bool[Tensor, " row"]
    pairs: dict[str, tuple[float, float]]
    nested: tuple[tuple[int, ...], ...]
    maps: tuple[Float[Tensor, "_ _"], ...]
    note: str | None = None


def record() -> Outer:
    rng = torch.Generator().manual_seed(0)
    return Outer(
        config=Inner((1, 3, 4)),
        kl={
            "ML": torch.rand(5, generator=rng, dtype=torch.float64),
            "none": torch.full((5,), torch.nan),
        },
        counts=torch.tensor([[1, 2, 3], [4, 5, 2**40]]),
        seen=torch.tensor([True, False]),
        pairs={"BMA": (1.0, 0.1)},
        nested=((1,), (2, 3)),
        maps=(torch.rand(2, 2, generator=rng), torch.rand(3, 3, generator=rng)),
    )


def test_what_is_read_was_written(tmp_path: Path) -> None:
    stem = tmp_path / "standard-1.2.3"
    write_data(stem, record(), {"key": "k", "name": "it"})
    again = read_data(stem, Outer)
    assert same(again, record())
    assert again.kl["none"].dtype == torch.float32
    assert isinstance(again.nested[1], tuple)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "standard-1.2.3.json",
        "standard-1.2.3.npz",
    ]
    about = read_about(stem)
    assert (about["name"], about["data"]["kl"]["ML"]) == ("it", {"array": "data.kl.ML"})
    with np.load(arrays_file(stem)) as arrays:
        assert np.array_equal(arrays["data.counts"], record().counts.numpy())


def test_the_same_data_are_the_same_bytes(tmp_path: Path) -> None:
    for name in "ab":
        write_data(tmp_path / name, record(), {"key": "k"})
    for ending in ("json", "npz"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize("damage", ["changed array", "no arrays", "half", "changed word", "gone"])
def test_damage_is_found(tmp_path: Path, damage: str) -> None:
    stem = tmp_path / "it"
    write_data(stem, record(), {"key": "k"})
    content = bytearray(arrays_file(stem).read_bytes())
    if damage == "gone":
        arrays_file(stem).unlink()
    elif damage == "no arrays":
        arrays_file(stem).write_bytes(b"")
    elif damage == "half":
        arrays_file(stem).write_bytes(content[: len(content) // 2])
    elif damage == "changed array":
        content[200] ^= 1
        arrays_file(stem).write_bytes(content)
    else:
        about = json.loads(data_file(stem).read_bytes())
        about["data"]["pairs"]["BMA"][0] = 2.0
        data_file(stem).write_text(json.dumps(about))
    with pytest.raises(ValueError, match=r"it\.(npz|json)"):
        read_data(stem, Outer)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"counts": torch.zeros(3)}, "data.counts must be numbers"),
        ({"seen": torch.zeros(3).bool()}, "data.seen must be numbers"),  # rows are those of counts
        ({"pairs": {"BMA": [1.0]}}, "data.pairs.BMA must be a list of 2"),
        ({"nested": [[1], ["2"]]}, "data.nested.1.0 must be a whole number"),
    ],
)
def test_what_is_not_of_its_type_is_named(change: dict[str, Any], said: str) -> None:
    plain, arrays = packed(record())
    for name, value in change.items():
        if isinstance(value, Tensor):
            arrays[f"data.{name}"] = value.numpy()
        else:
            plain[name] = value
    with pytest.raises(FieldError, match=said.replace(".", r"\.")):
        unpacked(Outer, plain, arrays)


def test_as_lists_of_json() -> None:
    found = as_lists(record())
    assert found["counts"] == record().counts.tolist()
    assert found["config"] == {"lags": [1, 3, 4]}
    assert found["maps"][1] == record().maps[1].tolist()
