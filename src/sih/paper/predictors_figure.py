"""The reference predictors, one panel per set of lags and kind of matrices."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.kl_panels import CUT, draw_panels
from sih.paper.over_matrices import means_in_words
from sih.paper.predictors import PredictorCurves, PredictorsConfig
from sih.results import style
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows

LOOKS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "selective, sum (β=3)": (style.GREEN, (0, (4, 1)), 1.2),
    "selective, mean (β=100)": (style.BLUE, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "plug-in, P by counting": (style.SKY, (0, (4, 1)), 1.2),
    "n-gram in context": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "stationary distribution": (style.ORANGE, (0, (5, 2)), 1.2),
}


def caption(config: PredictorsConfig) -> str:
    """Return the caption for the requested task."""
    return (
        f"KL divergence from the true next-token distribution (nats) along the sequence (T = "
        f"{config.length}) for reference "
        "predictors that know the matrix and the lags (but for the matrix, the plug-in; but for both, the n-gram). "
        f"{means_in_words(config)} {CUT} No models are trained."
    )


def draw(data: PredictorCurves) -> Figure:
    """Draw the reference predictors."""
    return draw_panels(data.panels, [panel.title for panel in data.panels], LOOKS)


def table(data: PredictorCurves) -> Rows:
    """Return mean KL beyond the first max_lag positions, with its standard error over
    matrices.
    """
    titles = [panel.title for panel in data.panels]
    return mean_kl_table(data.panels, "predictor", titles=titles)
