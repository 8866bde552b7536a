from __future__ import annotations

import json
from dataclasses import dataclass

from sih.results.record_json import plain, record_from


@dataclass(frozen=True)
class Inner:
    lags: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class Outer:
    config: Inner
    kl: list[dict[str, list[float]]]
    pairs: dict[str, tuple[float, float]]
    nested: list[tuple[int, ...]]
    maps: list[tuple[float, ...] | None]
    note: str | None = None


def test_a_way_through_json_changes_nothing() -> None:
    data = Outer(
        Inner((1, 3, 4)), [{"ML": [0.1, 0.25]}], {"BMA": (1.0, 0.5)}, [(1,), (2, 3)], [None, (0.5,)]
    )
    again = record_from(Outer, json.loads(json.dumps(plain(data))))
    assert again == data
    assert isinstance(again.config.lags, tuple)
    assert isinstance(again.nested[0], tuple)
    assert isinstance(again.maps[1], tuple)
