"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sih.analysis.distances import Agreement
from sih.experiments import (
    agreement,
    beta,
    certificates,
    claim_cumulative,
    claim_expectations,
    claim_histogram,
    constructions,
    scaling,
    trained,
    wrong_lag,
)
from sih.experiments import head_counts as heads
from sih.experiments import training_courses as recipes
from sih.experiments.curves import Line, Panel
from sih.experiments.table import EXPERIMENTS
from sih.report import attention_statements as attention
from sih.report import theory_statements as theory
from sih.report import training_statements as training
from sih.report.statements import OURS, PAPER, judge_all


def test_every_statement_rests_on_a_figure_and_has_its_own_name() -> None:
    judges = PAPER + OURS
    assert len({judge.id for judge in judges}) == len(judges) >= 25
    for judge in judges:
        assert judge.figure in EXPERIMENTS, judge.id
        assert judge.section.startswith(("Sec", "App", "beyond the paper")), judge.id
        assert judge.statement.endswith("."), judge.id
        assert judge.remark.endswith(".") or not judge.remark, judge.id


def test_without_figures_nothing_is_measured_and_each_says_why() -> None:
    for statement in judge_all({}):
        assert statement.verdict == "not measured"
        assert statement.remark == f"figure {statement.figure} was not made"


@pytest.mark.parametrize("worst", [1e-13, 1e-7, 1e-3])
def test_certificates(worst: float) -> None:
    names = ("Prop. 1, third layer by masks", "third layer by positions", "two lags, 1 head", certificates.POSTERIOR)
    errors = [dict.fromkeys(names, 1e-14), dict.fromkeys(names, worst)]
    data = certificates.CertificateErrors(certificates.CertificatesConfig(lag_sets=((1, 2), (2, 3))), [2, 2], errors)
    expected = {1e-13: "holds", 1e-7: "holds with a remark", 1e-3: "does not hold"}[worst]
    for judge in (theory.proposition, theory.positions, theory.two_lags):
        found = judge.judge(data)
        assert (found.measured, found.verdict) == (worst, expected)
        assert [part.label for part in found.parts] == ["{1,2}", "{2,3}"]


@pytest.mark.parametrize(("gap", "verdict"), [(0.01, "holds"), (-0.01, "does not hold")])
def test_claim(gap: float, verdict: str) -> None:
    margins = [[0.1, 0.2], [gap, 0.3]]
    found = theory.claim.judge(claim_histogram.ClaimMargins(3, (1, 2), margins, 1e-11))
    assert (found.measured, found.verdict) == (gap, verdict)
    bars = claim_expectations.ExpectationBars(3, 2, (1, 2), [[0.0] * 2] * 2, [[0.0] * 2] * 2, margins, 1e-11)
    assert theory.claim_25.judge(bars).verdict == verdict


def test_a_gap_within_the_error_is_no_proof() -> None:
    found = theory.claim.judge(claim_histogram.ClaimMargins(3, (1, 2), [[1e-12, 0.2]], 1e-11))
    assert found.verdict == "holds with a remark"


def test_cumulative_averages_are_followed_to_the_end() -> None:
    own, other = [0.5, 0.4, 0.6, 0.7], [0.4, 0.5, 0.4, 0.3]
    data = claim_cumulative.CumulativePaths((1, 2), [[own, other], [other, own]], [[0.7, 0.3], [0.3, 0.7]])
    assert claim_cumulative.settled_after(data) == [3, 3]
    always = claim_cumulative.CumulativePaths((1, 2), [[[0.9], [0.1]], [[0.1], [0.9]]], [[0.7, 0.3], [0.3, 0.7]])
    assert claim_cumulative.settled_after(always) == [1, 1]
    never = claim_cumulative.CumulativePaths((1, 2), [[other, own], [own, other]], [[0.7, 0.3], [0.3, 0.7]])
    assert claim_cumulative.settled_after(never) == [5, 5]
    assert theory.cumulative.judge(data).verdict == "holds"


def test_large_beta_is_the_worst_short_length() -> None:
    config = beta.BetaConfig(lengths=(8, 32, 64))
    data = beta.BetaCurves(config, {}, {}, [], [], [0.1, 0.01, 0.001], [0.001, 0.002, 0.01], [0.0001, 0.0, 0.0])
    found = theory.large_beta.judge(data)
    assert found.measured == pytest.approx(1.2)
    assert found.verdict == "holds with a remark"
    assert [part.label for part in found.parts] == ["T = 8", "T = 32"]


def test_exponents() -> None:
    exponents = {"ML": 0.2, "estimator": 0.1, "single head": 0.03}
    data = wrong_lag.WrongLagRates(wrong_lag.WrongLagConfig(), [], {}, {}, {}, exponents, {}, {})
    assert theory.asymptotics.judge(data).measured == pytest.approx(0.5)
    assert theory.asymptotics.judge(data).verdict == "holds with a remark"
    assert theory.one_head_rate.judge(data).measured == pytest.approx(0.3)
    assert theory.one_head_rate.judge(data).verdict == "holds"


def _curves(construction: float, one_head: float, two_lags: float, bayes: float) -> constructions.ConstructionCurves:
    mean = {"BMA": 0.01, "ML": 0.02, "construction": construction, "construction, 1 head": one_head}
    mean |= {"two lags, 1 head": two_lags, "Bayes-optimal construction": bayes}
    over = {other: {name: (value - mean[other], 1e-6) for name, value in mean.items()} for other in mean}
    config = constructions.ConstructionsConfig(lag_sets=((1, 3),))
    return constructions.ConstructionCurves(config, [], [], [], [], [], [mean], [], [over])


def test_circuits() -> None:
    good = _curves(0.021, 0.04, 0.0215, 0.01)
    assert theory.construction_ml.judge(good).measured == pytest.approx(1.05)
    assert theory.one_head_kl.judge(good).measured == pytest.approx(0.04 / 0.021)
    for judge in (theory.construction_ml, theory.one_head_kl, theory.two_lags_optimal, theory.bayes_kl):
        assert judge.judge(good).verdict == "holds"
    bad = _curves(0.03, 0.02, 0.04, 0.02)
    for judge in (theory.construction_ml, theory.one_head_kl, theory.two_lags_optimal, theory.bayes_kl):
        assert judge.judge(bad).verdict == "does not hold"


def test_heads_outside_the_range_are_counted() -> None:
    inside = heads.HeadCounts(3, [heads.HeadCount(2, 3, 2, 5), heads.HeadCount(3, 3, 3, 2)], ())
    assert theory.head_range.judge(inside).verdict == "holds"
    assert theory.fewer_heads.judge(inside).measured == 5
    outside = heads.HeadCounts(3, [heads.HeadCount(2, 3, 4, 5), heads.HeadCount(3, 3, 2, 2)], ())
    assert theory.head_range.judge(outside).measured == 7
    assert theory.head_range.judge(outside).verdict == "does not hold"
    assert theory.head_range.judge(dataclasses.replace(inside, unsettled=((1, 2),))).verdict == "does not hold"


def _line(mean: float, error: float = 1e-6, window: float | None = None) -> Line:
    return Line(9, [], [], {"4-8": (mean if window is None else window, error)}, mean, error)


def _panel(lags: tuple[int, ...], kl: dict[str, float], references: tuple[str, ...]) -> Panel:
    levels = kl | {"midway": (kl["BMA"] + kl["ML"]) / 2}
    over = {other: {name: _line(value - levels[other]) for name, value in kl.items()} for other in references}
    return Panel(lags, {name: _line(value) for name, value in kl.items()}, over)


def _trained(kl: dict[str, float], lags: tuple[int, ...] = (1, 2, 3)) -> trained.TrainedCurves:
    panel = _panel(lags, {"BMA": 0.01, "ML": 0.02, **kl}, ("BMA", "ML", "construction", "midway"))
    runs = {name: [f"model of {name}"] for name in kl if name.startswith("trained")}
    return trained.TrainedCurves(trained.TrainedConfig(), [panel], [{}], [runs], [{}], [{}], [])


@pytest.mark.parametrize(("kl", "verdict"), [(0.02, "holds"), (0.0239, "holds with a remark"), (0.03, "does not hold")])
def test_trained_against_the_construction(kl: float, verdict: str) -> None:
    data = _trained({"construction": 0.02, "trained standard": kl, "trained disentangled": kl})
    for judge in (training.standard_trained, training.disentangled_trained):
        found = judge.judge(data)
        assert found.measured == pytest.approx(kl / 0.02)
        assert found.verdict == verdict
        assert len(found.models) == 1
    assert training.standard_trained.judge(_trained({"construction": 0.02})).verdict == "not measured"


@pytest.mark.parametrize(("kl", "verdict"), [(0.03, "holds"), (0.05, "does not hold")])
def test_one_head_trained(kl: float, verdict: str) -> None:
    data = _trained({"construction": 0.02, "construction, 1 head": 0.04, "trained standard, 1 head": kl})
    found = training.one_head_trained.judge(data)
    assert found.measured == pytest.approx(kl / 0.04)
    assert found.verdict == verdict


@pytest.mark.parametrize(("kl", "place"), [(0.01, 0.0), (0.013, 0.3), (0.018, 0.8), (0.02, 1.0)])
def test_between_bma_and_ml(kl: float, place: float) -> None:
    data = _trained({"construction": 0.02, "trained standard": kl}, lags=(1, 3))
    found = training.two_lags_short.judge(data)
    assert found.measured == pytest.approx(place)
    assert found.verdict == ("holds" if place < 0.5 else "does not hold")
    assert training.two_lags_trained.judge(data).verdict == "holds"
    assert (
        training.two_lags_short.judge(_trained({"construction": 0.02, "trained standard": kl})).verdict
        == "not measured"
    )


def _scaling(layers: dict[str, float], by_heads: dict[str, float]) -> scaling.ScalingCurves:
    base = {"BMA": 0.01, "ML": 0.02}
    deep = _panel((1, 2, 3), {**base, **layers}, ("BMA", "ML", *layers))
    wide = _panel((1, 2, 3, 4, 5), {**base, **by_heads}, ("BMA", "ML", *by_heads))
    return scaling.ScalingCurves(scaling.ScalingConfig(), deep, wide, {"{1,2,3} [1,3,1]": ["standard-1.2.3"]}, [])


def test_depth_and_width() -> None:
    good = _scaling({"[1,1]": 0.2, "[3,3]": 0.1, "[1,3,1]": 0.02, "[1,3,1,1]": 0.021}, {})
    assert training.two_layers.judge(good).measured == pytest.approx(5)
    assert training.more_layers.judge(good).measured == pytest.approx(1.05)
    assert training.width_64.judge(good).models == ("standard-1.2.3",)
    for judge in (training.two_layers, training.more_layers, training.width_64):
        assert judge.judge(good).verdict == "holds"
    bad = _scaling({"[1,1]": 0.2, "[3,3]": 0.021, "[1,3,1]": 0.04, "[1,3,1,1]": 0.02}, {})
    for judge in (training.two_layers, training.more_layers, training.width_64):
        assert judge.judge(bad).verdict == "does not hold"


def test_heads_of_the_second_layer() -> None:
    falling = {"[1,1,1]": 0.08, "[1,3,1]": 0.04, "[1,5,1]": 0.02, "[1,7,1]": 0.02, "construction, 1": 0.09}
    good = training.more_heads.judge(_scaling({}, falling))
    assert good.measured == pytest.approx(0.5)
    assert [part.label for part in good.parts] == ["[1,3,1] to [1,1,1]", "[1,5,1] to [1,3,1]"]
    assert good.verdict == training.enough_heads.judge(_scaling({}, falling)).verdict == "holds"
    bad = _scaling({}, falling | {"[1,3,1]": 0.1, "[1,7,1]": 0.01})
    assert training.more_heads.judge(bad).verdict == "does not hold"
    assert training.enough_heads.judge(bad).verdict == "does not hold"
    few = _scaling({}, {"[1,3,1]": 0.1, "[1,7,1]": 0.01})
    assert training.enough_heads.judge(few).verdict == "not measured"


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
    judges = attention.PAPER
    good = agreement.Agreements(agreement.AgreementConfig(), {"standard-1.2.3": _agreement()}, {}, [])
    assert [judge.judge(good).verdict for judge in judges] == ["holds"] * 5
    worse = _agreement(correlation=-0.9, variation=0.5, selected=0.5, second=0.1)
    mixed = dataclasses.replace(
        good, models={**good.models, "disentangled-1.2.3": _agreement(), "standard-3.5.7": worse}
    )
    for judge in judges:
        found = judge.judge(mixed)
        assert found.verdict == "holds with a remark"  # most models do, not all
        assert set(found.models) == set(mixed.models)
        assert found.interval is not None
        assert found.interval[0] < found.interval[1]
    bad = dataclasses.replace(good, models={"standard-1.2.3-seed1": worse})
    assert [judge.judge(bad).verdict for judge in judges] == ["does not hold"] * 5
    others = dataclasses.replace(good, models={**good.models, "standard-1.2.3-1.1.1": worse})
    assert [judge.judge(others).verdict for judge in judges] == ["holds"] * 5  # not the construction's heads


def test_the_papers_own_training_is_read_from_runs_of_that_name() -> None:
    course = recipes.Course("paper-1.2.3", "g", "l", [0, 10], [0.5, 0.03], 0.02, 0.01)
    found = training.paper_training.judge(recipes.TrainingCourses([course], []))
    assert found.measured == pytest.approx(1.5)
    assert found.verdict == "does not hold"
    none = training.paper_training.judge(
        recipes.TrainingCourses([dataclasses.replace(course, name="standard-1.2.3")], [])
    )
    assert none.verdict == "not measured"
    assert "sih train" in none.remark
