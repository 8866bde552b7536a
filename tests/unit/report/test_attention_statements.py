"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses
from typing import Any

from support.findings import number_of

from sih.analysis.distances import Agreement
from sih.experiments import agreement
from sih.experiments.curves import Compared
from sih.report.attention_statements import (
    LAYER_1_MAPS,
    LAYER_1_SCORES,
    LAYER_2_DIAGONALS,
    LAYER_3_MAPS,
    LAYER_3_SELECTS,
    RECIPE,
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
    worse = _agreement(correlation=-0.9, variation=0.5, selected=0.5, second=0.1)
    good = _data(standard=_agreement())
    assert [one.judge(good).verdict for one in statements] == ["holds"] * 5
    mixed = _data(standard=_agreement(), disentangled=_agreement(), other=worse)
    for one in statements:
        assert one.judge(mixed).verdict == "holds with a remark"  # most models do, not all
        found = number_of(one.judge(mixed))
        assert set(found.models) == set(mixed.models)
        assert found.interval is not None
        assert found.interval[0] < found.interval[1]
    assert [one.judge(_data(standard=worse)).verdict for one in statements] == ["does not hold"] * 5
    for other in (Compared("standard", (1, 1, 1)), Compared("standard", (1, 3, 1), 128)):  # not the usual heads, width
        others = _data(standard=_agreement(), other=worse)
        others = dataclasses.replace(others, compared={**others.compared, "other": other})
        assert [one.judge(others).verdict for one in statements] == ["holds"] * 5


def test_models_of_our_recipe_are_judged_apart() -> None:
    good = _data(standard=_agreement())
    assert [one.judge(good).verdict for one in RECIPE] == ["not measured"] * 5
    ours = dataclasses.replace(good, compared={"standard": Compared("standard", (1, 3, 1))})
    assert [one.judge(ours).verdict for one in RECIPE] == ["holds"] * 5
    assert LAYER_1_MAPS.judge(ours).verdict == "not measured"
    worse = _data(standard=_agreement(variation=0.5))
    falls = Compared("standard", (1, 3, 1), plain=True, unsettled="at 9 steps")
    assert LAYER_1_MAPS.judge(dataclasses.replace(worse, compared={"standard": falls})).verdict == "unsettled"


def _data(**models: Agreement) -> agreement.Agreements:
    compared = {name: Compared(name, (1, 3, 1), plain=True) for name in models}
    return agreement.Agreements(agreement.AgreementConfig(), compared, models, {}, [])
