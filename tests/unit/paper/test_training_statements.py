"""Each statement measures what it says: made-up data whose answer is known, on both sides of every rule."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from support.findings import OURS, PAPER, number_of

import sih
from sih.heads import heads_needed
from sih.paper import scaling, trained
from sih.paper import scaling_statements as scaled
from sih.paper import trained_statements as training
from sih.paper.scaling import ScalingRow
from sih.paper.trained import ModelKL, TrainedPanel
from sih.results.curves import Curve, Pair, Times
from sih.results.models import Models, TrainedModel, Training, shipped_models
from sih.training.config import TrainConfig
from sih.training.runs.run_store import RunStore

PLAIN = TrainedModel("a", "standard", (1, 2, 3), 128, (1, 3, 1), "paper", 0, None)
EMPTY = Curve(torch.zeros(0), torch.zeros(0), torch.zeros(0))


def _kl(model: TrainedModel, mean: float, **windows: float) -> ModelKL:
    parts = {
        name.replace("w", "").replace("_", "-"): (value, 1e-6) for name, value in windows.items()
    }
    return ModelKL(model, EMPTY, Times("construction", (mean, 1e-6), parts, ()), {})


def _data(*each: ModelKL) -> trained.TrainedCurves:
    panel = TrainedPanel((1, 2, 3), {}, {}, 128, "matrix 0", {one.model.name: one for one in each})
    return trained.TrainedCurves(trained.TrainedConfig(), (panel,), ())


def _named(**values: float) -> list[ModelKL]:
    return [_kl(dataclasses.replace(PLAIN, name=name), value) for name, value in values.items()]


@pytest.mark.parametrize(
    ("kl", "verdict", "count"),
    [
        ({"a": 1.0}, "holds", ""),
        ({"a": 1.0, "b": 1.2}, "holds with a remark", "1 of 2"),
        ({"a": 1.0, "b": 0.9, "c": 1.5}, "does not hold", "2 of 3"),
        ({"a": 0.5, "b": 1.5}, "does not hold", "1 of 2"),  # their mean is 1 and would hold
    ],
)
def test_each_seed_is_judged_alone(kl: dict[str, float], verdict: str, count: str) -> None:
    found = training.STANDARD_TRAINED.judge(_data(*_named(**kl)))
    assert (found.verdict, found.count) == (verdict, count)
    assert number_of(found).value == pytest.approx(max(kl.values()))
    assert found.models == tuple(kl)


def test_a_window_decides_where_the_mean_hides() -> None:
    found = training.STANDARD_TRAINED.judge(_data(_kl(PLAIN, 1.0, w4_8=0.6, w65_127=23.0)))
    assert (found.verdict, number_of(found).value) == ("does not hold", 23.0)
    assert [(part.label, part.value) for part in number_of(found).parts] == [
        ("mean", 1.0),
        ("4-8", 0.6),
        ("65-127", 23.0),
    ]
    assert "65-127 tokens seen" in number_of(found).label


def test_statements_are_about_models_of_one_way_and_kind() -> None:
    kinds: dict[str, tuple[str, Training]] = {
        "standard-trained": ("standard", "paper"),
        "standard-recipe": ("standard", "SOAP"),
        "disentangled-trained": ("disentangled", "paper"),
        "disentangled-recipe": ("disentangled", "SOAP"),
        "disentangled-recipe-adam": ("disentangled", "Adam"),
    }
    of = {one.id: one for one in PAPER + OURS}
    models = [
        dataclasses.replace(PLAIN, name=id, kind=k, training=t) for id, (k, t) in kinds.items()
    ]
    data = _data(*(_kl(one, 1.0) for one in models))
    for id in kinds:
        found = of[id].judge(data)
        assert (found.verdict, found.models) == ("holds", (id,))
        assert found.paper_setting == ("yes" if id.endswith("trained") else "no")


def test_every_statement_about_our_recipes_stands_among_ours_and_has_one_recipe() -> None:
    about = [one for one in PAPER + OURS if one.models is not None]
    assert len(about) > 20
    for one in about:
        assert one.models is not None
        assert (one in PAPER) == (one.models.training == "paper"), one.id
        assert one.models.training is not None


def test_no_shipped_model_is_left_out_of_a_statement_it_belongs_to() -> None:
    read = set(trained.reads(trained.EXPERIMENT.config, RunStore()))
    scaling_reads = set(scaling.reads(scaling.EXPERIMENT.config, RunStore()))
    assert {"paper-1.2.3-length64", "paper-1.2.3-length64-seed1", "standard-1.3.4-1.1.1"} <= read
    lags = set(trained.EXPERIMENT.config.lag_sets)
    for one in PAPER + OURS:
        if one.models is not None and one.experiment in (trained.EXPERIMENT, scaling.EXPERIMENT):
            fit = shipped_models(one.models)
            assert {
                model.lags for model in fit.values()
            } <= lags or one.experiment is scaling.EXPERIMENT
            if one.experiment is trained.EXPERIMENT:
                assert set(fit) <= read, one.id
    assert set(shipped_models(Models(layers=(2, 4, 5)))) <= scaling_reads


def test_no_shipped_model_with_a_fellow_is_left_out_of_what_is_said_of_heads_and_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which model is compared with which, by configurations alone; every prediction is the same here."""
    monkeypatch.setattr(scaling, "trained_law", lambda run, tokens: sih.bma(tokens, run.task))
    data = scaling.compute(scaling.ScalingConfig(constructed_heads=(), sequences=2), RunStore())
    configs = {name: RunStore().run(name).config for name in RunStore().names(papers_task=True)}
    configs = {name: one for name, one in configs.items() if one.task.states == 5}
    standard = {name: one for name, one in configs.items() if one.model.kind == "standard"}
    ways = {
        "": ("uniform", "adam"),
        "-recipe": ("harmonic", "soap"),
        "-recipe-adam": ("harmonic", "adam"),
    }
    for end, way in ways.items():
        own = {
            name: one
            for name, one in standard.items()
            if (one.recipe.name, one.optimiser.name) == way
        }
        usual = {name: one for name, one in own.items() if "dim" not in one.unusual()}
        three = {name: one for name, one in usual.items() if len(one.heads) == 3}

        def fewer(one: TrainConfig, three: dict[str, TrainConfig] = three) -> list[int]:
            fellows = [two.heads[1] for two in three.values() if two.task == one.task]
            return [count for count in fellows if count < one.heads[1]]

        needed = {name: heads_needed(one.task.lags) for name, one in three.items()}
        expected = {
            "two-layers": {name for name, one in own.items() if len(one.heads) == 2},
            "more-layers": {name for name, one in usual.items() if len(one.heads) > 3}
            if len(three)
            else set(),
            "more-heads": {
                n for n, one in three.items() if fewer(one) and one.heads[1] <= needed[n]
            },
            "enough-heads": {
                n for n, one in three.items() if one.heads[1] > needed[n] in fewer(one)
            },
        }
        for id, names in expected.items():
            found = [one.judge(data) for one in PAPER + OURS if one.id == id + end]
            assert {name for one in found for name in one.models} == (names if found else set()), (
                id + end
            )
    plain = scaled.MORE_HEADS.judge(data)
    assert len(plain.each) == 2 + 3  # two seeds of {1,2,3}; five lags: 1 to 2, 2 to 3, 3 to 5
    assert (
        scaled.MORE_HEADS_RECIPE.judge(data).count == "11 of 11"
    )  # 1 + 3 seeds; 1 + 1 + 1; 1 + 1 + 1


def test_a_model_that_still_gets_better_refutes_nothing() -> None:
    falls = dataclasses.replace(PLAIN, unsettled="at 20 steps, where its KL still falls")
    found = training.STANDARD_TRAINED.judge(_data(_kl(falls, 1.5)))
    assert (found.verdict, "Unsettled at 20 steps" in found.remark) == ("unsettled", True)
    assert training.STANDARD_TRAINED.judge(_data(_kl(falls, 1.0))).verdict == "holds"
    finished = dataclasses.replace(PLAIN, name="b")
    assert (
        training.STANDARD_TRAINED.judge(_data(_kl(falls, 1.5), _kl(finished, 1.4))).verdict
        == "does not hold"
    )


@pytest.mark.parametrize(
    ("kl", "verdict"), [(0.9, "holds"), (1.05, "holds with a remark"), (1.2, "does not hold")]
)
def test_one_head_trained(kl: float, verdict: str) -> None:
    one = dataclasses.replace(PLAIN, name="one", heads=(1, 1, 1))
    found = training.ONE_HEAD_TRAINED.judge(_data(_kl(one, kl), _kl(PLAIN, 9.0)))
    assert (found.verdict, found.models) == (verdict, ("one",))
    two_lags = dataclasses.replace(one, lags=(1, 3))  # there one head is what is needed
    assert training.ONE_HEAD_TRAINED.judge(_data(_kl(two_lags, kl))).verdict == "not measured"


@pytest.mark.parametrize(("place", "verdict"), [(0.3, "holds"), (0.8, "does not hold")])
def test_between_bma_and_ml(place: float, verdict: str) -> None:
    model = dataclasses.replace(PLAIN, lags=(1, 3), heads=(1, 1, 1))
    between: dict[str, Pair] = {"4-8": (place, 0.01), "9-16": (2.0, 0.1), "17-31": (9.0, 0.1)}
    data = _data(dataclasses.replace(_kl(model, 1.0), between=between))
    found = training.TWO_LAGS_SHORT.judge(data)
    assert (found.verdict, number_of(found).value) == (verdict, place)
    assert [part.label for part in number_of(found).parts] == ["4-8", "9-16", "17-31"]
    assert training.TWO_LAGS_TRAINED.judge(data).verdict == "holds"
    assert training.TWO_LAGS_SHORT.judge(_data(_kl(PLAIN, 1.0))).verdict == "not measured"


def test_width() -> None:
    assert training.WIDTH_64.judge(_data(_kl(PLAIN, 1.05))).verdict == "holds"
    wide, short = dataclasses.replace(PLAIN, dim=128), dataclasses.replace(PLAIN, length=64)
    ours = dataclasses.replace(PLAIN, training="SOAP")
    for other in (wide, short, ours, dataclasses.replace(PLAIN, kind="disentangled")):
        assert training.WIDTH_64.judge(_data(_kl(other, 1.0))).verdict == "not measured"


def test_the_papers_training_is_a_share_of_runs() -> None:
    found = training.PAPER_TRAINING.judge(_data(*_named(a=1.0, b=1.2, c=1.3)))
    assert number_of(found).value == pytest.approx(2 / 3)
    assert (found.verdict, found.count) == ("unsettled", "2 of 3")
    assert (
        training.PAPER_TRAINING.judge(_data(*_named(**dict.fromkeys("abcdefgh", 1.0)))).verdict
        == "holds"
    )
    assert (
        training.PAPER_TRAINING.judge(_data(*_named(**dict.fromkeys("abcdefgh", 2.0)))).verdict
        == "does not hold"
    )
    ours = dataclasses.replace(PLAIN, training="SOAP")
    assert training.PAPER_TRAINING.judge(_data(_kl(ours, 1.0))).verdict == "not measured"


def _row(
    kl: dict[tuple[int, ...], float], training: Training, lags: tuple[int, ...] = (1, 2, 3)
) -> ScalingRow:
    models = {
        str(heads): TrainedModel(str(heads), "standard", lags, 128, heads, training, 0, None)
        for heads in kl
    }
    every = {str(heads): value for heads, value in kl.items()}
    over = {
        name: {
            other: Times(other, (value / beside, 1e-6), {}, ())
            for other, beside in {**every, "ML": 0.02}.items()
            if other != name
        }
        for name, value in every.items()
    }
    return ScalingRow(lags, {}, {}, models, over)


def _scaling(
    layers: ScalingRow,
    heads: ScalingRow | None = None,
    plain: ScalingRow | None = None,
    *others: ScalingRow,
) -> scaling.ScalingCurves:
    none = _row({}, "SOAP")
    return scaling.ScalingCurves(
        scaling.ScalingConfig(), layers, heads or none, plain or none, others, ()
    )


def test_depth() -> None:
    good = _scaling(_row({(1, 1): 0.2, (3, 3): 0.1, (1, 3, 1): 0.02, (1, 3, 1, 1): 0.021}, "SOAP"))
    assert number_of(scaled.TWO_LAYERS_RECIPE.judge(good)).value == pytest.approx(5)
    assert number_of(scaled.MORE_LAYERS_RECIPE.judge(good)).value == pytest.approx(1.05)
    for judge in (scaled.TWO_LAYERS_RECIPE, scaled.MORE_LAYERS_RECIPE):
        assert judge.judge(good).verdict == "holds"
    bad = _scaling(_row({(1, 1): 0.2, (3, 3): 0.021, (1, 3, 1): 0.04, (1, 3, 1, 1): 0.02}, "SOAP"))
    for judge in (scaled.TWO_LAYERS_RECIPE, scaled.MORE_LAYERS_RECIPE):
        assert judge.judge(bad).verdict == "does not hold"
    for judge in (
        scaled.TWO_LAYERS,
        scaled.MORE_LAYERS,
        scaled.TWO_LAYERS_ADAM,
    ):  # of other ways of training
        assert judge.judge(good).verdict == "not measured"


def test_heads_of_the_second_layer() -> None:
    lags = (1, 2, 3, 4, 5)
    falling: dict[tuple[int, ...], float] = {
        (1, 1, 1): 0.08,
        (1, 3, 1): 0.04,
        (1, 5, 1): 0.02,
        (1, 7, 1): 0.02,
    }
    rising = falling | {(1, 3, 1): 0.1, (1, 7, 1): 0.01}
    empty = _row({}, "SOAP")
    good = _scaling(empty, _row(falling, "SOAP", lags), _row(rising, "paper", lags))
    bad = _scaling(empty, _row(rising, "SOAP", lags), _row(falling, "paper", lags))
    found = scaled.MORE_HEADS_RECIPE.judge(good)
    assert number_of(found).value == pytest.approx(0.5)
    assert [one.label.split(", ")[-2] for one in found.each] == [
        "[1,3,1] to [1,1,1]",
        "[1,5,1] to [1,3,1]",
    ]
    assert (found.verdict, scaled.MORE_HEADS_RECIPE.judge(bad).verdict) == (
        "holds",
        "does not hold",
    )
    assert (scaled.MORE_HEADS.judge(bad).verdict, scaled.MORE_HEADS.judge(good).verdict) == (
        "holds",
        "does not hold",
    )
    assert scaled.ENOUGH_HEADS_RECIPE.judge(good).verdict == "holds"
    assert scaled.ENOUGH_HEADS_RECIPE.judge(bad).verdict == "does not hold"
    assert scaled.ENOUGH_HEADS.judge(_scaling(empty)).verdict == "not measured"


def test_heads_of_all_lags_are_judged_and_each_seed_alone() -> None:
    usual: dict[tuple[int, ...], float] = {(1, 1, 1): 0.08, (1, 2, 1): 0.04, (1, 3, 1): 0.02}
    good = _scaling(_row({}, "SOAP"), None, None, _row(usual, "paper"))
    assert (scaled.MORE_HEADS.judge(good).verdict, scaled.MORE_HEADS.judge(good).count) == (
        "holds",
        "2 of 2",
    )
    bad = _scaling(_row({}, "SOAP"), None, None, _row(usual | {(1, 3, 1): 0.05}, "paper"))
    found = scaled.MORE_HEADS.judge(bad)
    assert (found.verdict, found.count) == ("does not hold", "1 of 2")
    assert number_of(found).value == pytest.approx(1.25)
    assert "[1,3,1] to [1,2,1]" in number_of(found).label


def test_a_window_decides_between_two_trained_models_too() -> None:
    row = _row({(1, 3, 1): 0.02, (1, 3, 1, 1): 0.02}, "SOAP")
    windows = {"4-8": (1.0, 1e-6), "17-32": (0.5, 1e-6)}
    row.over["(1, 3, 1, 1)"]["(1, 3, 1)"] = Times("(1, 3, 1)", (1.0, 1e-6), windows, ("65-127",))
    found = scaled.MORE_LAYERS_RECIPE.judge(_scaling(row))
    assert (found.verdict, number_of(found).value) == ("does not hold", 0.5)
    assert "17-32 tokens seen (left out: 65-127)" in number_of(found).label


def test_heads_are_judged_by_the_mean_with_the_windows_beside_it() -> None:
    row = _row({(1, 1, 1): 0.08, (1, 3, 1): 0.04}, "SOAP")
    windows = {"4-8": (1.2, 1e-6), "17-32": (0.3, 1e-6)}  # as the paper's circuit has them
    row.over["(1, 3, 1)"]["(1, 1, 1)"] = Times("(1, 1, 1)", (0.5, 1e-6), windows, ())
    found = scaled.MORE_HEADS_RECIPE.judge(_scaling(_row({}, "SOAP"), row))
    assert (found.verdict, number_of(found).value) == ("holds", 0.5)
    assert [part.label for part in number_of(found).parts] == ["mean", "4-8", "17-32"]
    assert "The rule uses the mean" in found.remark
