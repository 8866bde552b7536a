"""The reference predictors, a panel for each set of lags."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.kl_panels import draw_panels
from sih.paper.predictors import PredictorCurves
from sih.results import style
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows, braces

CAPTION = (
    "KL divergence from the true next-token distribution (nats) along the sequence for reference predictors that "
    "know the matrix and the lags (but for the matrix, the plug-in; but for both, the n-gram), 5 states. Means over "
    "matrices with Dirichlet(1) rows, bands one standard error over matrices. The last position is left out: it has no "
    "next token. No models are trained."
)

LOOKS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "selective, sum (β=3)": (style.GREEN, (0, (4, 1)), 1.2),
    "selective, mean (β=100)": (style.BLUE, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "plug-in, P by counting": (style.SKY, (0, (4, 1)), 1.2),
    "n-gram in context": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "stationary distribution": (style.ORANGE, (0, (5, 2)), 1.2),
}


def draw(data: PredictorCurves) -> Figure:
    """Draw the reference predictors."""
    return draw_panels(data.panels, [f"lags {braces(panel.lags)}" for panel in data.panels], LOOKS)


def table(data: PredictorCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels, "predictor")
