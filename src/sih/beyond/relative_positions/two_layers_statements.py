"""Statements on the limits of two attention-only layers with relative positions."""

from __future__ import annotations

from sih.beyond.relative_positions import two_layers
from sih.beyond.relative_positions.two_layers import TwoLayers
from sih.results.judging import BEYOND, Measured, Rule, Statement
from sih.results.tables import braces

LONG = 512


def _with_as_many_heads_as_lags(data: TwoLayers) -> list[Measured]:
    """Return the least error at each length from `LONG` on, with one second-layer head
    per lag.
    """
    lags = data.config.lags
    chosen = (x for x in data.probabilities if x.length >= LONG and x.heads == len(lags))
    return [Measured(x.lower, label=f"{braces(lags)}, length {x.length}") for x in chosen]


TWO_LAYERS = Statement(
    "relative-two-layers", BEYOND,
    "Two attention-only layers with relative positions and one second-layer head per lag misjudge "
    f"a probability by 0.01 or more on some sequence of {LONG} tokens, whatever their weights.",
    two_layers.EXPERIMENT, _with_as_many_heads_as_lags, Rule("at least", 0.01, 0.005), "",
    "least error of the probability of a token, lags {1,2,3}, reach 4, the worse of two lengths",
    "It is a bound on single sequences, which are rare under the task.",
)  # fmt: skip

STATEMENTS = (TWO_LAYERS,)
