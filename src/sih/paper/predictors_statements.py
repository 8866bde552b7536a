"""Statements on the reference predictors (Sec. 4)."""

from __future__ import annotations

from sih.paper import predictors
from sih.paper.predictors import PredictorCurves
from sih.results.curves import Panel, windows
from sih.results.judging import Measured, Rule, Statement
from sih.results.tables import braces

TENDS = Rule("at most", 0.01, 0.1)
"""Remaining share of a difference that tends to 0: a hundredth, or up to a tenth with a
remark."""


def gap(panel: Panel, first: int, last: int) -> tuple[float, float]:
    """Return ML's mean KL minus BMA's over these numbers of tokens, and a bound on its
    error.

    The errors at all positions, and those of ML and BMA, are added: this is their
    largest possible sum.
    """
    best, likely = panel.kl["BMA"], panel.kl["ML"]
    part = slice(first - 1, last)
    apart = (likely.mean[part] - best.mean[part]).mean().item()
    return apart, (likely.error[part] + best.error[part]).mean().item()


def left_of_gap(panel: Panel) -> Measured:
    """Return the gap over the last tokens, relative to the gap over the first."""
    spans = windows(panel.lags[-1], len(panel.kl["ML"].mean))
    start, start_error = gap(panel, *spans[0])
    end, end_error = gap(panel, *spans[-1])
    relative = end / start
    error = (end_error + abs(relative) * start_error) / start
    first, last = (f"{a}-{b}" for a, b in (spans[0], spans[-1]))
    return Measured.of(relative, error, f"{braces(panel.lags)}, {last} over {first} tokens seen")


def _left(data: PredictorCurves) -> list[Measured]:
    return [left_of_gap(panel) for panel in data.panels]


BMA_TENDS_TO_ML = Statement(
    "bma-tends-to-ml", "Sec. 4",
    "As tokens come in, the posterior concentrates on the true lag, and the Bayesian average "
    "tends to ML.",
    predictors.EXPERIMENT, _left, TENDS, "of the first gap",
    "mean KL of ML less that of BMA in the last window of positions, over the same in the first "
    "window past the "
    "largest lag; the worst lag set. Its interval is a bound, with all errors added",
)  # fmt: skip

STATEMENTS = (BMA_TENDS_TO_ML,)
