"""One panel per true lag, on the axes of the paper's App. E."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.claim.claim_histogram import ClaimConfig
from sih.claim.monte_carlo import PAPER_LAGS
from sih.results import style
from sih.results.tables import law_in_words


def is_papers(lags: Sequence[int]) -> bool:
    """Return whether these are the paper's twelve lags, which have known axes."""
    return tuple(lags) == PAPER_LAGS


def matrices_in_words(config: ClaimConfig) -> str:
    """Return the number of matrices and their distribution, in words."""
    drawn = law_in_words(config.matrix_law, config.concentration)
    return f"{config.matrices:,} with {config.num_states} states, {drawn}"


def lag_colours(lags: Sequence[int]) -> dict[int, str]:
    """Return one colour per lag, all different for up to twelve."""
    return {lag: style.TWELVE[n % len(style.TWELVE)] for n, lag in enumerate(lags)}


def panels_of(lags: Sequence[int], xlabel: str, ylabel: str) -> tuple[Figure, list[Axes]]:
    """Return one panel per true lag, in rows of up to four."""
    columns = min(len(lags), 4)
    rows = math.ceil(len(lags) / columns)
    figure = style.PaperFigure(figsize=(style.PAGE, 0.7 + 1.3 * rows))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels = grid.flatten().tolist()
    for ax in panels[len(lags) :]:
        ax.set_visible(False)
    for ax, lag in zip(panels, lags, strict=False):
        ax.set_title(f"true lag {lag}")
    for ax in panels[len(lags) - columns : len(lags)]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(xlabel)
    for ax in grid[:, 0]:
        ax.set_ylabel(ylabel)
    return figure, panels[: len(lags)]
