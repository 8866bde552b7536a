"""How depth and heads change what is learned (App. B)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from sih.paper import scaling
from sih.paper.scaling import ScalingCurves, ScalingRow
from sih.paper.trained_statements import BELOW, RECIPES
from sih.results.beside import heads_label
from sih.results.judging import BEYOND, Measured, Rule, Statement
from sih.results.models import Models, TrainedModel, Training

FAILS = Rule("at least", 2.0, 1.25)

SAME = Rule("at least", 0.9, 0.8)
"""Not better by more than a tenth; up to a fifth with a remark."""


def _pairs(
    models: Models,
    row: ScalingRow,
    wanted: Callable[[TrainedModel, TrainedModel], bool],
    reference: str = "",
) -> list[Measured]:
    """Compare every two models that fit and are wanted, each seed with each, or every model with a reference."""
    fit = [one for one in row.models.values() if one in models]
    found = []
    for one in fit:
        others = [reference] if reference else [other.name for other in fit if wanted(one, other)]
        for other in others:
            beside = reference or heads_label(row.models[other].heads)
            if not reference and row.models[other].seed:
                beside += f", seed {row.models[other].seed}"
            number = Measured.of(*row.over[one.name][other])
            found.append(number.about(one, f", {heads_label(one.heads)} to {beside}"))
    return found


def _two_layers(models: Models, data: ScalingCurves) -> list[Measured]:
    return _pairs(models, data.layers, lambda one, other: False, "ML")


def _more_layers(models: Models, data: ScalingCurves) -> list[Measured]:
    return _pairs(models, data.layers, lambda one, other: len(one.heads) > 3 == len(other.heads))


def _row(models: Models, data: ScalingCurves) -> ScalingRow:
    return data.plain_heads if models.training == "paper" else data.heads


def _more_heads(models: Models, data: ScalingCurves) -> list[Measured]:
    """Compare each number of heads, up to as many as lags, with the next smaller one."""
    row = _row(models, data)
    counts = sorted({one.heads[1] for one in row.models.values() if one in models})
    steps = {(more, fewer) for fewer, more in itertools.pairwise(counts) if more <= len(row.lags)}
    return _pairs(models, row, lambda one, other: (one.heads[1], other.heads[1]) in steps)


def _enough_heads(models: Models, data: ScalingCurves) -> list[Measured]:
    row = _row(models, data)
    return _pairs(models, row, lambda one, other: one.heads[1] > len(row.lags) == other.heads[1])


def _scaled(
    id: str,
    text: str,
    models: Models,
    measure: Callable[[Models, ScalingCurves], list[Measured]],
    rule: Rule,
    unit: str,
    quantity: str,
    remark: str = "",
    section: str = "",
) -> Iterable[Statement[ScalingCurves]]:
    """Make a statement on models trained as in the paper, and one for each of our recipes."""

    def of(id: str, section: str, text: str, training: Training) -> Statement[ScalingCurves]:
        wanted = replace(models, training=training)
        own = partial(measure, wanted)
        return Statement(
            id, section, text, scaling.EXPERIMENT, own, rule, unit, quantity, remark, wanted
        )

    yield of(id, section, f"{text}.", "paper")
    for end, (training, words) in RECIPES.items():
        yield of(f"{id}-{end}", BEYOND, f"{text}; with {words}.", training)


TWO_LAYERS, TWO_LAYERS_RECIPE, TWO_LAYERS_ADAM = _scaled(
    "two-layers", "Two layers cannot solve the task, whatever the heads", Models("standard", layers=(2,)), _two_layers,
    FAILS, "× ML", "mean KL of the best two-layer transformer over that of ML, lags {1,2,3}",
    "A perfect predictor is below 1 and would refute it, as it should.", section="App. B; Fig. 6 left",
)  # fmt: skip

MORE_LAYERS, MORE_LAYERS_RECIPE, MORE_LAYERS_ADAM = _scaled(
    "more-layers", "More than three layers do no better than three",
    Models("standard", layers=(3, 4, 5), usual_width=True), _more_layers, SAME, "× three layers",
    "mean KL with four or five layers over that with three, the least of all pairs of seeds, lags {1,2,3}",
    section="App. B; Fig. 6 left",
)  # fmt: skip

MORE_HEADS, MORE_HEADS_RECIPE, _ = _scaled(
    "more-heads", "More second-layer heads bring trained models closer to maximum likelihood, up to as many as lags",
    Models("standard", usual_width=True), _more_heads, BELOW, "× fewer heads",
    "mean KL with more heads over that with the next smaller number, the worst step up to five, five lags",
    section="App. B; Fig. 6 right",
)  # fmt: skip

ENOUGH_HEADS, ENOUGH_HEADS_RECIPE, _ = _scaled(
    "enough-heads", "Beyond as many heads as lags, more heads do not help", Models("standard", usual_width=True),
    _enough_heads, SAME, "× as many as lags",
    "mean KL with more heads than lags over that with as many, five lags", section="App. B; Fig. 6 right",
)  # fmt: skip

STATEMENTS = (
    TWO_LAYERS,
    MORE_LAYERS,
    MORE_HEADS,
    ENOUGH_HEADS,
    TWO_LAYERS_RECIPE,
    TWO_LAYERS_ADAM,
    MORE_LAYERS_RECIPE,
    MORE_LAYERS_ADAM,
    MORE_HEADS_RECIPE,
    ENOUGH_HEADS_RECIPE,
)
