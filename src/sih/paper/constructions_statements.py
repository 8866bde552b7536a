"""Statements on the predictions of hand-written circuits (Secs. 5.4 and 6)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sih.paper import constructions
from sih.paper.constructions import SINK, ConstructionCurves
from sih.results.curves import minus
from sih.results.judging import BEYOND, MATCH, Measured, Rule, Statement, ratio

ABOVE = Rule("at least", 1.0, 1.0)


def _ratios(
    name: str, reference: str, data: ConstructionCurves, *, run: bool = False
) -> list[Measured]:
    """Return the ratio of two circuits' KL in every panel with both, with an interval
    over matrices.

    With `run`, the weights themselves are compared.
    """
    found = []
    for panel in data.run if run else data.panels:
        if name in panel.kl:
            one, other = panel.kl[name], panel.kl[reference]
            apart = minus(one, other)
            found.append(ratio(other.whole.pair(), apart.pair(), panel.title))
    return found


def _over_ml(data: ConstructionCurves) -> list[Measured]:
    """Return the KL of the construction relative to ML, and of the construction with a
    sink.
    """
    sink = [
        replace(one, label=f"{one.label}, with a sink", variant=True)
        for one in _ratios(SINK, "ML", data)
    ]
    return _ratios("construction", "ML", data) + sink


CONSTRUCTION_ML = Statement(
    "construction-ml", "Sec. 6, main results; Fig. 4",
    "The construction with the optimal number of heads matches maximum likelihood.",
    constructions.EXPERIMENT, _over_ml, MATCH, "KL/ML",
    "mean KL of the construction over that of ML past the largest lag, the worst of four lag "
    "sets, for matrices of two "
    "distributions",
    "As printed it is near ML but above it: at the first positions some heads have nothing to "
    "average, and beta counts once per head (errata 4 and 5). With a sink it is exactly Prop. 1, "
    "and below ML.",
)  # fmt: skip

ONE_HEAD_KL = Statement(
    "one-head-kl", "Sec. 5.4; Fig. 4",
    "With one head the construction still solves the task, less well than with the optimal number.",
    constructions.EXPERIMENT, partial(_ratios, "construction, 1 head", "construction"), ABOVE, "× optimal heads",
    "mean KL of the construction with one head over that with the optimal number, the least of "
    "four lag sets, for "
    "matrices of two distributions",
    "This holds for the paper's form, in which a head keeps lags apart. If heads may mix lags, "
    "fewer of them lose less or nothing.",
)  # fmt: skip

TWO_LAGS_OPTIMAL = Statement(
    "two-lags-optimal", "Secs. 5.4 and 6; Fig. 4, last panel",
    "For two lags the single-head construction does as well as the one with more heads.",
    constructions.EXPERIMENT, partial(_ratios, "two lags, 1 head", "construction"), MATCH, "× optimal heads",
    "mean KL of the single-head construction for two lags over that with the optimal number of "
    "heads",
)  # fmt: skip

BAYES_KL = Statement(
    "ours-bayes-kl", BEYOND,
    "Run as weights, that circuit predicts as well as the Bayesian model average, so better than "
    "maximum likelihood.",
    constructions.EXPERIMENT, partial(_ratios, "Bayes-optimal construction", "BMA", run=True),
    Rule("at most", 1.001, 1.01), "× BMA",
    "mean KL of the Bayes-optimal construction over that of BMA, the worst of four lag sets, for "
    "matrices of two "
    "distributions",
)  # fmt: skip

STATEMENTS = (ONE_HEAD_KL, TWO_LAGS_OPTIMAL, CONSTRUCTION_ML, BAYES_KL)
