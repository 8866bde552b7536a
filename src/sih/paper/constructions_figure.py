"""Hand-written circuits, with BMA and ML."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.constructions import (
    ConstructionCurves,
    ConstructionsConfig,
)
from sih.paper.kl_panels import CIRCUITS, CUT, draw_panels, least_heads_title
from sih.paper.over_matrices import means_in_words
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows


def caption(config: ConstructionsConfig) -> str:
    """Return the caption for the requested task."""
    return (
        "KL divergence from the true next-token distribution (nats) along the sequence for circuits written by hand "
        f"(T = {config.length}, lambda = {config.lam:g}, beta = {config.beta:g}), the construction also with a sink "
        "at the first position, beside maximum likelihood (ML) and the Bayesian model average (BMA). Curves are of "
        "what the weights compute, by its closed form where that is exact (`certificates`). K is the least number of "
        "second-layer heads that keep lags apart, which the construction has. "
        f"{means_in_words(config)} {CUT} No models are trained."
    )


def draw(data: ConstructionCurves) -> Figure:
    """Draw the hand-written circuits, with BMA and ML."""
    titles = [f"{panel.title}, {least_heads_title(panel)}" for panel in data.panels]
    return draw_panels(data.panels, titles, CIRCUITS)


def table(data: ConstructionCurves) -> Rows:
    """Return mean KL beyond the first max_lag positions, with its standard error over
    matrices.
    """
    return mean_kl_table(data.panels, titles=[panel.title for panel in data.panels])
