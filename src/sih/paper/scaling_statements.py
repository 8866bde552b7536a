"""Statements on the effect of depth and heads (App. B)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from sih.paper import scaling
from sih.paper.scaling import ScalingCurves
from sih.paper.trained_statements import BELOW, BY_PAIR, RECIPES, beside_reference
from sih.results.beside import heads_label
from sih.results.judging import BEYOND, Measured, Rule, Statement
from sih.results.models import Models, TrainedModel, Training, circuit_heads, heads_of

FAILS = Rule("at least", 2.0, 1.25)


SAME = Rule("at least", 0.9, 0.8)
"""Tolerance: not better by more than a tenth, or up to a fifth with a remark."""


Wanted = Callable[[TrainedModel, TrainedModel], bool]


def _pairs(
    models: Models, rule: Rule | None, data: ScalingCurves, wanted: Wanted
) -> list[Measured]:
    """Return the ratio of each model that fits to every other wanted one, each seed
    with each.

    Without a rule the ratio is that of the means, with the windows as parts.
    """
    found = []
    for row in data.rows:
        alike = [
            one for one in row.models.values() if one.training == models.training and not one.dim
        ]
        for one, other in itertools.product(alike, alike):
            if one in models and wanted(one, other):
                seed = f", seed {other.seed}" if other.seed else ""
                note = f", {heads_label(one.heads)} to {heads_label(other.heads)}{seed}"
                found.append(beside_reference(one, row.over[one.name][other.name], rule, note))
    return found


def _two_layers(models: Models, rule: Rule, data: ScalingCurves) -> list[Measured]:
    fit = [
        (one, data.layers.over[one.name]["ML"])
        for one in data.layers.models.values()
        if one in models
    ]
    return [beside_reference(one, ml, rule, f", {heads_label(one.heads)} to ML") for one, ml in fit]


def _more_layers(models: Models, rule: Rule, data: ScalingCurves) -> list[Measured]:
    return _pairs(
        models, rule, data, lambda one, other: len(other.heads) == 3 and heads_of(other) == "needed"
    )


def _more_heads(models: Models, rule: Rule, data: ScalingCurves) -> list[Measured]:
    """Return the ratio of each number of heads, up to the circuit's, to the next
    smaller one, by the mean.
    """
    counts: dict[tuple[int, ...], set[int]] = {}
    for one in (one for row in data.rows for one in row.models.values() if one in models):
        counts.setdefault((*one.lags, one.length), set()).add(one.heads[1])

    def next_smaller(one: TrainedModel, other: TrainedModel) -> bool:
        fewer = [count for count in counts[*one.lags, one.length] if count < one.heads[1]]
        return (
            bool(fewer)
            and other.heads[1] == max(fewer)
            and one.heads[1] <= circuit_heads(one.lags)[1]
        )

    return _pairs(models, None, data, next_smaller)


def _enough_heads(models: Models, rule: Rule, data: ScalingCurves) -> list[Measured]:
    return _pairs(
        models,
        rule,
        data,
        lambda one, other: one.heads[1] > other.heads[1] == circuit_heads(one.lags)[1],
    )


def _scaled(
    id: str,
    text: str,
    models: Models,
    measure: Callable[[Models, Rule, ScalingCurves], list[Measured]],
    rule: Rule,
    unit: str,
    quantity: str,
    remark: str = "",
    section: str = "",
) -> Iterable[Statement[ScalingCurves]]:
    """Return one statement on models trained as in the paper, and one per preset of
    this package.
    """

    def of(id: str, section: str, text: str, training: Training) -> Statement[ScalingCurves]:
        wanted = replace(models, training=training)
        own = partial(measure, wanted, rule)
        return Statement(
            id, section, text, scaling.EXPERIMENT, own, rule, unit, quantity, remark, wanted
        )

    yield of(id, section, f"{text}.", "paper")
    for end, (training, words) in RECIPES.items():
        yield of(f"{id}-{end}", BEYOND, f"{text}; with {words}.", training)


TWO_LAYERS, TWO_LAYERS_RECIPE, TWO_LAYERS_ADAM = _scaled(
    "two-layers", "Two layers cannot solve the task, whatever the heads", Models("standard", layers=(2,)), _two_layers,
    FAILS, "KL/ML", "mean KL of the best two-layer transformer over that of ML, lags {1,2,3}",
    "A perfect predictor is below 1 and would refute it, as it should.", section="App. B; Fig. 6 left",
)  # fmt: skip


MORE_LAYERS, MORE_LAYERS_RECIPE, MORE_LAYERS_ADAM = _scaled(
    "more-layers", "More than three layers do no better than three",
    Models("standard", layers=(4, 5), usual_width=True), _more_layers, SAME, "× three layers",
    "mean KL with four or five layers over that with three, the least of all pairs of seeds, "
    f"{BY_PAIR}",
    section="App. B; Fig. 6 left",
)  # fmt: skip


MORE_HEADS, MORE_HEADS_RECIPE, _ = _scaled(
    "more-heads", "More second-layer heads bring trained models closer to maximum likelihood, up to as many as lags",
    Models("standard", usual_width=True), _more_heads, BELOW, "× fewer heads",
    "mean KL with more heads over that with the next smaller number, the worst step up to as many "
    "as the circuit needs "
    "(as lags, where they are contiguous), each seed with each",
    "The rule uses the mean. In the first window the paper's own circuit is more certain with "
    "more heads, and has up to 1.2 times the KL that it has with fewer. The windows are shown too.",
    section="App. B; Fig. 6 right",
)  # fmt: skip


ENOUGH_HEADS, ENOUGH_HEADS_RECIPE, _ = _scaled(
    "enough-heads", "Beyond as many heads as lags, more heads do not help", Models("standard", usual_width=True),
    _enough_heads, SAME, "× as many as lags",
    f"mean KL with more heads than the circuit needs over that with as many, {BY_PAIR}",
    section="App. B; Fig. 6 right",
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
