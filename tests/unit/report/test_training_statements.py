"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses

import pytest
from support.findings import number_of

from sih.experiments import scaling, trained, training_courses
from sih.experiments.compared import heads_label
from sih.experiments.curves import CIRCUIT, PREDICTOR, Compared, Curve, Panel
from sih.report import training_statements as training

BESIDE = {"BMA": Compared(PREDICTOR), "ML": Compared(PREDICTOR)}
BESIDE |= dict.fromkeys(("construction", "construction, 1 head"), Compared(CIRCUIT))


def _curve(mean: float, error: float = 1e-6) -> Curve:
    return Curve(9, [], [], {"4-8": (mean, error)}, mean, error)


def _panel(lags: tuple[int, ...], models: dict[str, Compared], kl: dict[str, float]) -> Panel:
    """Everything is paired with everything."""
    kl = {"BMA": 0.01, "ML": 0.02, **kl}
    levels = kl | {"midway": 0.015}
    minus = {other: {name: _curve(kl[name] - level) for name in kl} for other, level in levels.items()}
    of = BESIDE | models
    return Panel(lags, {name: of[name] for name in kl}, {name: _curve(value) for name, value in kl.items()}, minus)


def _trained(
    kl: dict[str, float], lags: tuple[int, ...] = (1, 2, 3), plain: bool = True, unsettled: str = "", length: int = 32
) -> trained.TrainedCurves:
    heads = (1, 1 if len(lags) == 2 else 3, 1)
    models: dict[str, Compared] = {}
    for kind in ("standard", "disentangled"):
        one = Compared(kind, heads, models=(f"a {kind} model",), plain=plain, unsettled=unsettled)
        models |= {f"trained {kind}": one, f"trained {kind}, 1 head": dataclasses.replace(one, heads=(1, 1, 1))}
    panel = _panel(lags, models, kl)
    whole = trained.TrainedPanel(panel.lags, panel.compared, panel.kl, panel.minus, length, {}, {})
    return trained.TrainedCurves(trained.TrainedConfig(), [whole], [])


@pytest.mark.parametrize(("kl", "verdict"), [(0.02, "holds"), (0.0239, "holds with a remark"), (0.03, "does not hold")])
def test_trained_against_the_construction(kl: float, verdict: str) -> None:
    mean_kl = {"construction": 0.02, "trained standard": kl, "trained disentangled": kl}
    plainly = training.STANDARD_TRAINED, training.DISENTANGLED_TRAINED
    recipe = training.STANDARD_RECIPE, training.DISENTANGLED_RECIPE
    for judges, others, plain in ((plainly, recipe, True), (recipe, plainly, False)):
        data = _trained(mean_kl, plain=plain)
        for judge in judges:
            found = judge.judge(data)
            assert number_of(found).value == pytest.approx(kl / 0.02)
            assert found.verdict == verdict
            assert len(number_of(found).models) == 1
        assert [judge.judge(data).verdict for judge in others] == ["not measured"] * 2
    assert training.STANDARD_TRAINED.judge(_trained({"construction": 0.02})).verdict == "not measured"


def test_a_model_that_still_gets_better_refutes_nothing() -> None:
    data = _trained({"construction": 0.02, "trained standard": 0.03}, unsettled="at 20 steps, where its KL still falls")
    found = training.STANDARD_TRAINED.judge(data)
    assert (found.verdict, "Unsettled at 20 steps" in found.remark) == ("unsettled", True)
    good = _trained({"construction": 0.02, "trained standard": 0.02}, unsettled="at 20 steps")
    assert training.STANDARD_TRAINED.judge(good).verdict == "holds"


@pytest.mark.parametrize(("kl", "verdict"), [(0.03, "holds"), (0.05, "does not hold")])
def test_one_head_trained(kl: float, verdict: str) -> None:
    data = _trained({"construction": 0.02, "construction, 1 head": 0.04, "trained standard, 1 head": kl})
    found = training.ONE_HEAD_TRAINED.judge(data)
    assert number_of(found).value == pytest.approx(kl / 0.04)
    assert found.verdict == verdict


@pytest.mark.parametrize(("kl", "place"), [(0.01, 0.0), (0.013, 0.3), (0.018, 0.8), (0.02, 1.0)])
def test_between_bma_and_ml(kl: float, place: float) -> None:
    data = _trained({"construction": 0.02, "trained standard": kl}, lags=(1, 3))
    found = training.TWO_LAGS_SHORT.judge(data)
    assert number_of(found).value == pytest.approx(place)
    assert found.verdict == ("holds" if place < 0.5 else "does not hold")
    assert training.TWO_LAGS_TRAINED.judge(data).verdict == "holds"
    assert (
        training.TWO_LAGS_SHORT.judge(_trained({"construction": 0.02, "trained standard": kl})).verdict
        == "not measured"
    )


def _scaling(
    layers: dict[str, float], by_heads: dict[str, float], plain_heads: dict[str, float] | None = None
) -> scaling.ScalingCurves:
    """Models by label, beside one that is wider and better than all, which is left out of account."""
    shapes = [(1, 1), (3, 3), (1, 1, 1), (1, 3, 1), (1, 5, 1), (1, 7, 1), (1, 3, 1, 1)]
    models = {heads_label(heads): Compared("standard", heads, models=(f"model {heads}",)) for heads in shapes}
    models |= {"wide": Compared("standard", (1, 1), 128), "construction, 1": Compared(CIRCUIT, (1, 1, 1))}
    deep = _panel((1, 2, 3), models, {**layers, "wide": 0.001})
    wide, plain = (_panel((1, 2, 3, 4, 5), models, kl) for kl in (by_heads, plain_heads or {}))
    return scaling.ScalingCurves(scaling.ScalingConfig(), deep, wide, plain, [])


@pytest.mark.parametrize(
    ("kl", "verdict"), [(0.021, "holds"), (0.0239, "holds with a remark"), (0.03, "does not hold")]
)
def test_width(kl: float, verdict: str) -> None:
    data = _trained({"trained standard": kl, "trained disentangled": 1.0, "trained standard, 1 head": 1.0}, length=65)
    found = training.WIDTH_64.judge(data)
    assert number_of(found).value == pytest.approx(kl / 0.02)
    assert found.verdict == verdict
    assert number_of(found).models == ("a standard model",)
    for other in (
        _trained({"trained standard": kl}, length=64),
        _trained({"trained standard": kl}, plain=False, length=65),
    ):
        assert training.WIDTH_64.judge(other).verdict == "not measured"


def test_depth() -> None:
    good = _scaling({"[1,1]": 0.2, "[3,3]": 0.1, "[1,3,1]": 0.02, "[1,3,1,1]": 0.021}, {})
    assert number_of(training.TWO_LAYERS.judge(good)).value == pytest.approx(5)
    assert number_of(training.MORE_LAYERS.judge(good)).value == pytest.approx(1.05)
    for judge in (training.TWO_LAYERS, training.MORE_LAYERS):
        assert judge.judge(good).verdict == "holds"
    bad = _scaling({"[1,1]": 0.2, "[3,3]": 0.021, "[1,3,1]": 0.04, "[1,3,1,1]": 0.02}, {})
    for judge in (training.TWO_LAYERS, training.MORE_LAYERS):
        assert judge.judge(bad).verdict == "does not hold"


def test_heads_of_the_second_layer() -> None:
    falling = {"[1,1,1]": 0.08, "[1,3,1]": 0.04, "[1,5,1]": 0.02, "[1,7,1]": 0.02, "construction, 1": 0.09}
    rising = falling | {"[1,3,1]": 0.1, "[1,7,1]": 0.01}
    plainly, recipe = _scaling({}, rising, falling), _scaling({}, falling, rising)
    for statement, good, bad in (
        (training.MORE_HEADS, plainly, recipe),
        (training.MORE_HEADS_RECIPE, recipe, plainly),
    ):
        found = statement.judge(good)
        assert number_of(found).value == pytest.approx(0.5)
        assert [part.label for part in number_of(found).parts] == ["[1,3,1] to [1,1,1]", "[1,5,1] to [1,3,1]"]
        assert (found.verdict, statement.judge(bad).verdict) == ("holds", "does not hold")
    assert training.MORE_HEADS.judge(_scaling({}, falling)).verdict == "not measured"
    assert training.ENOUGH_HEADS.judge(_scaling({}, falling)).verdict == "holds"
    bad = _scaling({}, rising)
    assert training.ENOUGH_HEADS.judge(bad).verdict == "does not hold"
    few = _scaling({}, {"[1,3,1]": 0.1, "[1,7,1]": 0.01})
    assert training.ENOUGH_HEADS.judge(few).verdict == "not measured"


def test_the_papers_own_training_is_read_from_runs_in_its_setting() -> None:
    steps, flat = [0, 10, 20], [0.5, 0.03, 0.03]
    plain = Compared("standard", models=("paper",), plain=True)
    course = training_courses.Course("paper", (1, 2, 3), plain, steps, flat, 0.02, 0.01)
    found = training.PAPER_TRAINING.judge(training_courses.TrainingCourses([course], []))
    assert number_of(found).value == pytest.approx(1.5)
    assert found.verdict == "does not hold"
    fell = dataclasses.replace(course, compared=dataclasses.replace(plain, unsettled="at 20 steps"))
    open_end = training.PAPER_TRAINING.judge(training_courses.TrainingCourses([fell], []))
    assert (open_end.verdict, "Unsettled at 20 steps" in open_end.remark) == ("unsettled", True)
    good = dataclasses.replace(course, kl=[0.5, 0.031, 0.02])
    assert training.PAPER_TRAINING.judge(training_courses.TrainingCourses([good], [])).verdict == "holds"
    none = training.PAPER_TRAINING.judge(
        training_courses.TrainingCourses([dataclasses.replace(course, compared=Compared("standard"))], [])
    )
    assert none.verdict == "not measured"
    assert "sih train" in none.remark
