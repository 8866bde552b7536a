"""KL along the sequence, a panel for each lag set: the form of the paper's Fig. 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sih.results import style
from sih.results.curves import Curve, Panel
from sih.results.tables import braces

Band = tuple[Float[Tensor, " position"], Float[Tensor, " position"]]
"""Its lower and its upper edge, along the positions."""

LOWEST = 1e-9
"""Stands for 0 on the logarithmic axis, far below what is shown."""

CIRCUITS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 2.4),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "construction": (style.BLUE, "-", 1.2),
    "construction with a sink": (style.GREEN, (0, (2, 1)), 1.2),
    "construction, 1 head": (style.SKY, (0, (4, 1)), 1.2),
    "two lags, 1 head": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "Bayes-optimal construction": (style.ORANGE, (0, (5, 2)), 1.2),
}


def circuits_title(panel: Panel) -> str:
    """Return the lags, and the least heads that the circuit needs for them."""
    return f"lags {braces(panel.lags)}, least heads: {panel.compared['construction'].heads[1]}"


def draw_panels(
    panels: Sequence[Panel],
    titles: Sequence[str],
    looks: Mapping[str, style.Look],
    bands: Sequence[Mapping[str, Band]] | None = None,
    floor: float = 2e-6,
    log_positions: bool = False,
    note: str = "",
) -> Figure:
    """Draw two panels in a row, from the first position whose next token a lag has made, and one legend for all.

    Bands are one standard error either way, unless `bands` says otherwise; below `floor` nothing is shown.
    """
    rows = math.ceil(len(panels) / 2)
    last = max(len(next(iter(panel.kl.values())).mean) for panel in panels)  # the axis is shared
    below = math.ceil(len({label for panel in panels for label in panel.kl}) / 3) + len(
        note.splitlines()
    )  # text lines
    with style.paper_figure(style.PAGE, 0.3 + 1.8 * rows + 0.15 * below) as figure:
        grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
        for number, ax in enumerate(grid.flat):
            if number >= len(panels):
                ax.set_visible(False)
                continue
            panel = panels[number]
            draw_curves(ax, panel.lags[-1], panel.kl, looks, bands[number] if bands else {})
            ax.set(ylim=(floor, 2), title=titles[number])
            if log_positions:
                style.doubling_positions(ax, min(one.lags[-1] for one in panels), last)
            else:
                ax.set_xlim(0, last)
            if number >= len(panels) - 2:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("position $i$ in the sequence")
        for ax in grid[:, 0]:
            ax.set_ylabel("KL to the true distribution (nats)")
        style.legend(figure, looks, columns=3, note=note)
    return figure


def draw_curves(
    ax: Axes,
    max_lag: int,
    kl: Mapping[str, Curve],
    looks: Mapping[str, style.Look],
    bands: Mapping[str, Band],
) -> None:
    """Draw one panel's curves. One with a band in `bands` has that instead of its standard error."""
    first = max_lag - 1
    for label, curve in kl.items():
        colour, dashes, width = looks.get(label, (style.SKY, ":", 1.2))
        positions = torch.arange(first + 1, len(curve.mean) + 1)
        usual = (curve.mean - curve.error, curve.mean + curve.error)
        edges = (*bands.get(label, usual), curve.mean)
        low, high, y = (edge[first:].clamp_min(LOWEST) for edge in edges)
        ax.plot(positions, y, color=colour, linestyle=dashes, lw=width, label=label)
        ax.fill_between(positions, low, high, color=colour, alpha=0.15, lw=0)
    ax.set_yscale("log")
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
