"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses
from typing import Any

from support.findings import number_of

from sih.analysis.distances import Agreement
from sih.experiments import agreement
from sih.report.attention_statements import (
    LAYER_1_MAPS,
    LAYER_1_SCORES,
    LAYER_2_DIAGONALS,
    LAYER_3_MAPS,
    LAYER_3_SELECTS,
)


def _agreement(**numbers: float) -> Agreement:
    found: dict[str, Any] = {
        "correlation": dict.fromkeys(("lags", "causal", "tokens"), (numbers.get("correlation", 0.99), 0.001)),
        "variation": dict.fromkeys(("1", "2", "3"), (numbers.get("variation", 0.05), 0.001)),
        "second": dict.fromkeys(("offset", "positions"), (numbers.get("second", 0.9), 0.001)),
        "shares": {name: (numbers.get("selected", 0.95), 0.001) for name in ("selected", "candidates")},
    }
    return Agreement((1, 2, 3), (1, 3, 1), (1, 3, 1), 5, uniform={}, parents=(1.0, 0.0), selected_by_lag={},
                     by_position={}, by_position_error={}, **found)  # fmt: skip


def test_attention() -> None:
    statements = (LAYER_1_SCORES, LAYER_1_MAPS, LAYER_2_DIAGONALS, LAYER_3_MAPS, LAYER_3_SELECTS)
    good = agreement.Agreements(agreement.AgreementConfig(), {"standard-1.2.3": _agreement()}, {}, [])
    assert [one.judge(good).verdict for one in statements] == ["holds"] * 5
    worse = _agreement(correlation=-0.9, variation=0.5, selected=0.5, second=0.1)
    mixed = dataclasses.replace(
        good, models={**good.models, "disentangled-1.2.3": _agreement(), "standard-3.5.7": worse}
    )
    for one in statements:
        assert one.judge(mixed).verdict == "holds with a remark"  # most models do, not all
        found = number_of(one.judge(mixed))
        assert set(found.models) == set(mixed.models)
        assert found.interval is not None
        assert found.interval[0] < found.interval[1]
    bad = dataclasses.replace(good, models={"standard-1.2.3-seed1": worse})
    assert [one.judge(bad).verdict for one in statements] == ["does not hold"] * 5
    others = dataclasses.replace(good, models={**good.models, "standard-1.2.3-1.1.1": worse})
    assert [one.judge(others).verdict for one in statements] == ["holds"] * 5  # not the construction's heads
