"""A panel for each true lag."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.results import style


def panels_of(lags: Sequence[int], xlabel: str, ylabel: str) -> tuple[Figure, list[Axes]]:
    """Make a panel for each true lag, in rows of up to four."""
    columns = min(len(lags), 4)
    rows = math.ceil(len(lags) / columns)
    figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
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
