"""The circuits written by hand, beside BMA and ML."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.constructions import (
    ConstructionCurves,
)
from sih.paper.kl_panels import CIRCUITS, circuits_title, draw_panels
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows

CAPTION = (
    "KL divergence from the true next-token distribution (nats) along the sequence for circuits written by hand and "
    "run as transformers (T = 128, lambda = 500, beta = 100), the construction also with a sink at the first "
    "position, by its closed form; beside maximum likelihood (ML) and the Bayesian model average "
    "(BMA). Means over matrices with Dirichlet(1) rows, bands one standard error over matrices; all on the same "
    "sequences. The last position is left out: it has no next token. No models are trained."
)


def draw(data: ConstructionCurves) -> Figure:
    """Draw the circuits written by hand, beside BMA and ML."""
    return draw_panels(data.panels, [circuits_title(panel) for panel in data.panels], CIRCUITS)


def table(data: ConstructionCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels)
