from __future__ import annotations

import json
from dataclasses import dataclass

from sih.artifacts.record_json import Saved


@dataclass(frozen=True)
class Inner:
    lags: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Outer(Saved):
    config: Inner
    kl: list[dict[str, list[float]]]
    pairs: dict[str, tuple[float, float]]
    nested: list[tuple[int, ...]]
    note: str | None = None


def test_a_way_through_json_changes_nothing() -> None:
    data = Outer(Inner((1, 3, 4)), [{"ML": [0.1, 0.25]}], {"BMA": (1.0, 0.5)}, [(1,), (2, 3)])
    again = Outer.from_dict(json.loads(json.dumps(data.to_dict())))
    assert again == data
    assert isinstance(again.config.lags, tuple)
    assert isinstance(again.nested[0], tuple)
