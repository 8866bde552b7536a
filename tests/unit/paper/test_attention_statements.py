"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.findings import number_of

from sih.attention.distances import Agreement, Selection
from sih.paper import agreement
from sih.paper import agreement_statements as attention
from sih.paper.agreement_statements import (
    LAYER_1_MAPS,
    LAYER_1_SCORES,
    LAYER_2_DIAGONALS,
    LAYER_3_MAPS,
    LAYER_3_SELECTS,
    RECIPE,
    SELECTIVE_HEAD,
)
from sih.results.models import TrainedModel, shipped_models
from sih.training.runs.run_store import RunStore

PLAIN = TrainedModel("a", "standard", (1, 2, 3), 128, (1, 3, 1), "paper", 0, None)
LIKENESS = (LAYER_3_SELECTS, LAYER_1_SCORES, LAYER_1_MAPS, LAYER_2_DIAGONALS, LAYER_3_MAPS)
Judged = tuple[TrainedModel, Agreement]


def _agreement(**numbers: float) -> Agreement:
    share = numbers.get("selected", 0.95)
    found: dict[str, Any] = {
        "correlation": dict.fromkeys(
            ("lags", "causal", "tokens"), (numbers.get("correlation", 0.99), 0.001)
        ),
        "variation": dict.fromkeys(("1", "2", "3"), (numbers.get("variation", 0.05), 0.001)),
        "second": dict.fromkeys(("offset", "positions"), (numbers.get("second", 0.9), 0.001)),
        "shares": dict.fromkeys(("selected", "candidates"), (share, 0.001)),
        "selection": Selection((share, 0.001), (0.97, 0.001), (share / 0.97, 0.001), 512),
    }
    return Agreement((1, 2, 3), (1, 3, 1), (1, 3, 1), 5, uniform={}, parents=(1.0, 0.0), selected_by_lag={},
                     by_position={}, by_position_error={}, **found)  # fmt: skip


def _data(*each: Judged) -> agreement.Agreements:
    facts, found = {one.name: one for one, _ in each}, {one.name: entry for one, entry in each}
    selection = {name: entry.selection for name, entry in found.items()}
    return agreement.Agreements(agreement.AgreementConfig(), facts, found, selection, {}, ())


def _named(name: str, training: Any = "paper", **numbers: float) -> Judged:
    return dataclasses.replace(PLAIN, name=name, training=training), _agreement(**numbers)


WORSE = {"correlation": -0.3, "variation": 0.5, "second": 0.1}


def test_finding_a_selective_head_is_apart_from_likeness() -> None:
    found = SELECTIVE_HEAD.judge(
        _data(_named("a"), _named("b", selected=0.5), _named("c", selected=0.78))
    )
    assert number_of(found).value == pytest.approx(2 / 3)  # 0.78 is 0.804 of the posterior's 0.97
    assert (found.count, found.verdict) == ("2 of 3", "unsettled")
    assert "0.780 on the true lag, posterior 0.970" in found.each[2].label
    for one in LIKENESS:  # those without one are not asked
        assert one.judge(_data(_named("a"), _named("b", selected=0.5, **WORSE))).models == ("a",)
        assert one.judge(_data(_named("b", selected=0.5, **WORSE))).verdict == "not measured"


def test_likeness() -> None:
    assert [one.judge(_data(_named("a"))).verdict for one in LIKENESS] == ["holds"] * 5
    worse = _data(_named("a", selected=0.85, **WORSE))
    assert [one.judge(worse).verdict for one in LIKENESS] == [
        "holds with a remark",
        *["does not hold"] * 4,
    ]
    mixed = _data(_named("a"), _named("b"), _named("c", selected=0.85, **WORSE))
    for one in LIKENESS:
        found = one.judge(mixed)
        assert (found.verdict, found.count) == ("holds with a remark", "2 of 3")
        assert set(found.models) == {"a", "b", "c"}


def test_signs_are_apart_from_sizes() -> None:
    found = LAYER_1_SCORES.judge(
        _data(_named("a", correlation=-0.97), _named("b", correlation=0.97))
    )
    assert (number_of(found).value, found.verdict) == (0.97, "holds")
    assert [one.label.split("; ")[-1] for one in found.each] == ["negative", "positive"]


def test_models_of_our_recipes_are_judged_apart() -> None:
    assert len(RECIPE) == 18
    for one in RECIPE:
        assert one.judge(_data(_named("a"))).verdict == "not measured"
    of_soap = [
        one
        for one in RECIPE
        if one.models and (one.models.kind, one.models.training) == ("standard", "SOAP")
    ]
    assert [one.judge(_data(_named("a", "SOAP"))).verdict for one in of_soap] == [
        "unsettled",
        *["holds"] * 5,
    ]
    assert LAYER_1_MAPS.judge(_data(_named("a", "SOAP"))).verdict == "not measured"


def test_every_shipped_model_that_fits_is_read() -> None:
    read = set(agreement.reads(agreement.EXPERIMENT.config, RunStore()))
    for one in (SELECTIVE_HEAD, *LIKENESS, *RECIPE):
        assert one.models is not None
        assert set(shipped_models(one.models)) <= read
    assert {
        "paper-1.2.3-1.1.1-length32",
        "paper-1.2.3.4.5-1.2.1-length32",
        "standard-1.2.3-dim128",
    } <= read


def test_the_criterion_is_relative_to_the_posterior() -> None:
    assert attention.SELECTIVE == 0.8
    for share, selective in ((0.775, False), (0.777, True)):
        assert attention.selects(_data(_named("a", selected=share)), "a") is selective
