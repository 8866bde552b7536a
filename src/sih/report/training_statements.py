"""Statements about how well trained transformers predict (Sec. 6, App. B)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator

from sih.experiments import scaling, trained
from sih.experiments import training_courses as recipes
from sih.experiments.cells import braces
from sih.experiments.curves import Line, Panel
from sih.report.rules import Judge, Measured, NotMeasuredError, Rule, judged, ratio, some
from sih.report.theory_statements import MATCH

BELOW = Rule("at most", 1.0, 1.0)
SAME = Rule("at least", 0.9, 0.8)
"""Not better by more than a tenth; up to a fifth with a remark."""


def _matches_construction(kind: str) -> Judge:
    @judged(
        f"{kind}-trained", "Sec. 6, main results; Fig. 4",
        f"Trained {kind} transformers with the optimal number of heads match the construction.",
        figure="trained", rule=MATCH,
        unit="× construction",
        quantity="mean KL of the trained model over that of the construction past the largest lag, the worst lag set",
        remark="Trained in minutes with the recipe of docs/training.md, not with the paper's optimiser settings.",
    )  # fmt: skip
    def measure(data: trained.TrainedCurves) -> Measured:
        found = _over_panels(data, f"trained {kind}", "construction")
        return MATCH.worst(some(found, f"no trained {kind} model is there"))

    return measure


standard_trained = _matches_construction("standard")
disentangled_trained = _matches_construction("disentangled")


@judged(
    "one-head-trained", "Sec. 6, main results; Fig. 4",
    "With one second-layer head, where the construction needs more, trained transformers beat its one-head form.",
    figure="trained", rule=BELOW,
    unit="× construction",
    quantity="mean KL trained with one head over that of the construction with one head, the worst of the lag sets",
    remark="Gradient descent did not find such a solution everywhere.",
)  # fmt: skip
def one_head_trained(data: trained.TrainedCurves) -> Measured:
    found = [
        each
        for kind in ("standard", "disentangled")
        for each in _over_panels(data, f"trained {kind}, 1 head", "construction, 1 head")
    ]
    return BELOW.worst(some(found, "no model with one second-layer head is there"))


@judged(
    "two-lags-trained", "Sec. 6, main results; Fig. 4, last panel",
    "For two lags one head is enough, for trained transformers too.",
    figure="trained", rule=MATCH,
    unit="× ML",
    quantity="mean KL of the trained one-head model for two lags over that of ML",
    remark="Near ML, but above it.",
)  # fmt: skip
def two_lags_trained(data: trained.TrainedCurves) -> Measured:
    return MATCH.worst(some(_two_lags(data, "ML"), "no model for two lags is there"))


@judged(
    "two-lags-short", "Sec. 6, main results; Fig. 4, last panel",
    "For two lags and short sequences trained transformers are closer to the Bayesian average than to ML.",
    figure="trained", rule=Rule("at most", 0.5, 0.5),
    unit="of the way",
    quantity="where the KL of the trained model lies between BMA (0) and ML (1) in the first window of positions",
    remark="Not at these lengths, or not beyond what sampling leaves open.",
)  # fmt: skip
def two_lags_short(data: trained.TrainedCurves) -> Measured:
    found = []
    for panel, names in zip(data.panels, data.runs, strict=True):
        for name in (f"trained {kind}" for kind in ("standard", "disentangled")):
            if len(panel.lags) == 2 and name in panel.kl:
                found.append(_between(panel, name, tuple(names[name])))
    chosen = Rule("at most", 0.5, 0.5).worst(some(found, "no model for two lags is there"))
    windows = tuple(part for each in found for part in each.parts)
    return Measured(chosen.value, chosen.interval, chosen.label, windows, chosen.models)


def _between(panel: Panel, name: str, models: tuple[str, ...]) -> Measured:
    """Half of the way is "midway"; the difference to it is paired."""
    parts = []
    for window in panel.kl["ML"].windows:
        width = panel.kl["ML"].windows[window][0] - panel.kl["BMA"].windows[window][0]
        mean, error = panel.over["midway"][name].windows[window]
        if width > 0:
            ends = (0.5 + (mean - 2 * error) / width, 0.5 + (mean + 2 * error) / width)
            parts.append(Measured(0.5 + mean / width, ends, f"{name}, {window} tokens seen"))
    first = parts[0]
    return Measured(first.value, first.interval, first.label, tuple(parts[:3]), models)


@judged(
    "width-64", "Sec. 6, last paragraph",
    "A width smaller than the sequence is long (64 < 128) is enough for optimal performance.",
    figure="scaling", rule=MATCH,
    unit="× ML",
    quantity="mean KL of the standard transformer with d = 64, lags {1,2,3}, over that of ML",
    remark="Near ML, but above it.",
)  # fmt: skip
def width_64(data: scaling.ScalingCurves) -> Measured:
    return MATCH.worst(some(_scaled(data, data.layers, ["[1,3,1]"], "ML"), "no model [1,3,1] is there"))


@judged(
    "two-layers", "App. B; Fig. 6 left",
    "Two layers cannot solve the task, whatever the heads.",
    figure="scaling", rule=Rule("at least", 2.0, 1.25),
    unit="× ML",
    quantity="mean KL of the best two-layer transformer over that of ML, lags {1,2,3}",
    remark="Worse than ML, but not by so much that it could be said to fail.",
)  # fmt: skip
def two_layers(data: scaling.ScalingCurves) -> Measured:
    names = [name for name in data.layers.kl if _depth(name) == 2]
    found = _scaled(data, data.layers, names, "ML")
    return Rule("at least", 2.0, 1.25).worst(some(found, "no two-layer model is there"))


@judged(
    "more-layers", "App. B; Fig. 6 left",
    "More than three layers do no better than three.",
    figure="scaling", rule=SAME,
    unit="× three layers",
    quantity="mean KL with four or five layers over that with three, the least of them, lags {1,2,3}",
    remark="A deeper model was better than the three-layer one.",
)  # fmt: skip
def more_layers(data: scaling.ScalingCurves) -> Measured:
    names = [name for name in data.layers.kl if _depth(name) > 3]
    found = _scaled(data, data.layers, names, "[1,3,1]")
    return SAME.worst(some(found, "no model of more than three layers is there"))


@judged(
    "more-heads", "App. B; Fig. 6 right",
    "More second-layer heads bring trained transformers closer to maximum likelihood, up to as many heads as lags.",
    figure="scaling", rule=BELOW,
    unit="× fewer heads",
    quantity="mean KL with more heads over that with the next smaller number, the worst step up to five, five lags",
    remark="Not every step up helped: where it did not, training ended in another solution.",
)  # fmt: skip
def more_heads(data: scaling.ScalingCurves) -> Measured:
    names = _by_heads(data, most=len(data.heads.lags))
    steps = [_scaled(data, data.heads, [more], fewer) for fewer, more in itertools.pairwise(names)]
    return BELOW.worst(some([each for step in steps for each in step], "fewer than two numbers of heads are there"))


@judged(
    "enough-heads", "App. B; Fig. 6 right",
    "Beyond as many heads as lags, more heads do not help.",
    figure="scaling", rule=SAME,
    unit="× as many as lags",
    quantity="mean KL with more heads than lags over that with as many, five lags",
    remark="More heads were better here: trained for a short time, a wider model may just be easier to train.",
)  # fmt: skip
def enough_heads(data: scaling.ScalingCurves) -> Measured:
    enough, every = _by_heads(data, most=len(data.heads.lags)), _by_heads(data, most=64)
    more = [name for name in every if name not in enough]
    if not enough or _second(enough[-1]) != len(data.heads.lags):
        raise NotMeasuredError("no model with as many heads as lags is there")
    found = _scaled(data, data.heads, more, enough[-1])
    return SAME.worst(some(found, "no model with more heads than lags is there"))


@judged(
    "paper-training", "Sec. 6, setup",
    "Adam at a constant rate of 0.001 on batches of 256 finds these solutions; in how many steps is not said.",
    figure="recipes", rule=MATCH,
    unit="× ML",
    quantity="mean KL at the end of training over that of ML, for models named paper-...",
    remark="Of a run that was stopped while its KL still fell: so many steps are not enough, more may be.",
)  # fmt: skip
def paper_training(data: recipes.TrainingCourses) -> Measured:
    found = [
        Measured(course.kl[-1] / course.ml, None, f"{course.name}, {course.steps[-1]:,} steps", models=(course.name,))
        for course in data.courses
        if course.name.startswith("paper-")
    ]
    reason = (
        "no run with the paper's own optimiser ships (hours on two cores). To measure it: sih train --lags 1 2 3 "
        "--heads 1 3 1 --steps 10000 --seed 0 --out out/runs/paper-1.2.3"
    )
    return MATCH.worst(some(found, reason))


def _over_panels(data: trained.TrainedCurves, name: str, reference: str) -> list[Measured]:
    """For each lag set that has both."""
    return [
        _compared(panel, name, reference, braces(panel.lags), tuple(runs[name]))
        for panel, runs in zip(data.panels, data.runs, strict=True)
        if name in panel.kl and reference in panel.kl
    ]


def _two_lags(data: trained.TrainedCurves, reference: str) -> list[Measured]:
    return [
        _compared(panel, name, reference, f"{braces(panel.lags)}, {name}", tuple(runs[name]))
        for panel, runs in zip(data.panels, data.runs, strict=True)
        for name in runs
        if len(panel.lags) == 2
    ]


def _scaled(data: scaling.ScalingCurves, panel: Panel, names: list[str], reference: str) -> list[Measured]:
    if reference not in panel.kl:
        return []
    models = {name: tuple(data.runs.get(f"{braces(panel.lags)} {name}", ())) for name in names}
    there = [name for name in names if name in panel.kl]
    return [_compared(panel, name, reference, f"{name} to {reference}", models[name]) for name in there]


def _compared(panel: Panel, name: str, reference: str, label: str, models: tuple[str, ...]) -> Measured:
    """The ratio of two mean KLs; the error of the difference is paired where the panel has it so."""
    if name in panel.over.get(reference, {}):
        over: Line = panel.over[reference][name]
        return ratio(panel.kl[reference].mean, (over.mean, over.mean_error), label, models)
    # Differences to ML are paired, and what is left of them is taken as independent: no smaller than it is.
    a, b = (panel.over["ML"][one] for one in (name, reference))
    return ratio(panel.kl[reference].mean, (a.mean - b.mean, math.hypot(a.mean_error, b.mean_error)), label, models)


def _heads(name: str) -> list[int]:
    found = re.fullmatch(r"\[([\d,]+)\]", name)
    return [int(count) for count in found[1].split(",")] if found else []


def _depth(name: str) -> int:
    return len(_heads(name))


def _second(name: str) -> int:
    return _heads(name)[1]


def _by_heads(data: scaling.ScalingCurves, most: int) -> list[str]:
    def three_layers() -> Iterator[str]:
        for name in data.heads.kl:
            if _depth(name) == 3 and _second(name) <= most:
                yield name

    return sorted(three_layers(), key=_second)


PAPER: tuple[Judge, ...] = (
    standard_trained,
    disentangled_trained,
    one_head_trained,
    two_lags_trained,
    two_lags_short,
    width_64,
    paper_training,
    two_layers,
    more_layers,
    more_heads,
    enough_heads,
)
