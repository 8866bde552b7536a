"""The estimator at several beta along the sequence, with BMA and ML."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.beta_along import BetaAlong, BetaAlongConfig, label_of
from sih.paper.kl_panels import CUT, draw_panels
from sih.paper.over_matrices import means_in_words
from sih.results import style
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows

BETAS = ("#C6DBEF", "#9ECAE1", "#6BAED6", "#4292C6", "#2171B5", "#08306B")
"""Colours from light to dark for small to large beta."""


def caption(config: BetaAlongConfig) -> str:
    """Return the caption for the requested task."""
    return (
        "KL divergence from the true next-token distribution (nats) along the sequence for the estimator of Prop. 1 at "
        "several inverse temperatures (darker is larger), beside maximum likelihood (ML) and the Bayesian model "
        f"average (BMA). {means_in_words(config)} {CUT} No models are trained."
    )


def looks_of(config: BetaAlongConfig) -> dict[str, style.Look]:
    """Return a shade for each beta, evenly from light to dark."""
    last = len(BETAS) - 1
    count = len(config.betas)
    places = [last if count == 1 else round(n * last / (count - 1)) for n in range(count)]
    shades = {
        label_of(beta): (BETAS[place], "-", 1.2)
        for beta, place in zip(config.betas, places, strict=True)
    }
    return {"BMA": (style.BLACK, "-", 1.6), "ML": (style.RED, (0, (2, 1)), 1.4), **shades}


def draw(data: BetaAlong) -> Figure:
    """Draw one curve per beta, with BMA and ML."""
    titles = [panel.title for panel in data.panels]
    return draw_panels(data.panels, titles, looks_of(data.config), columns=4)


def table(data: BetaAlong) -> Rows:
    """Return mean KL beyond the first max_lag positions, with its standard error over
    matrices.
    """
    return mean_kl_table(data.panels, "predictor", titles=[panel.title for panel in data.panels])
