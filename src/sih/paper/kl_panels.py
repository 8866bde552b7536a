"""KL along the sequence, in panels on the axes of the paper's Fig. 4.

Positions are linear from 0 to the length of the sequences. The KL is logarithmic from
1e-4 to 1. A curve that is lower leaves the panel through its lower edge.
"""

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

Band = tuple[Float[Tensor, " position"], Float[Tensor, " position"]]
"""The lower and the upper edge of a band along the positions."""

KL_RANGE = (1e-4, 1.0)
"""The paper's axis of the KL."""
LOWEST = 1e-9
"""Replacement for 0 on the logarithmic axis, far below the visible range."""
CUT = (
    "Axes are those of the paper's Fig. 4: positions are linear, and the KL is cut at 1e-4, where curves "
    "leave the panel."
)
"""Sentence of a caption on the ends of the axes."""

CIRCUITS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 2.4),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "construction": (style.BLUE, "-", 1.2),
    "construction with a sink": (style.GREEN, (0, (2, 1)), 1.2),
    "construction, 1 head": (style.SKY, (0, (4, 1)), 1.2),
    "two lags, 1 head": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "Bayes-optimal construction": (style.ORANGE, (0, (5, 2)), 1.2),
}


def least_heads_title(panel: Panel) -> str:
    """Return K, the number of second-layer heads of the construction: the least that it
    needs.
    """
    return f"K = {panel.compared['construction'].heads[1]}"


def draw_panels(
    panels: Sequence[Panel],
    titles: Sequence[str],
    looks: Mapping[str, style.Look],
    bands: Sequence[Mapping[str, Band]] | None = None,
    note: str = "",
    columns: int = 3,
) -> Figure:
    """Draw two panels per row, from the first position with a parent, with one legend
    for all.

    Bands are one standard error in each direction, unless `bands` gives others.
    """
    wide = min(2, len(panels))
    rows = math.ceil(len(panels) / 2)
    labels = len({label for panel in panels for label in panel.kl})
    below = math.ceil(labels / columns) + len(note.splitlines())  # text lines
    width = style.PAGE if wide == 2 else 0.62 * style.PAGE
    with style.paper_figure(width, 0.3 + 1.8 * rows + 0.15 * below) as figure:
        grid = figure.subplots(rows, wide, sharey=True, squeeze=False)
        for number, ax in enumerate(grid.flat):
            if number >= len(panels):
                ax.set_visible(False)
                continue
            panel = panels[number]
            draw_curves(ax, panel.lags[-1], panel.kl, looks, bands[number] if bands else {})
            papers_axes(ax, panel)
            ax.set_title(titles[number])
            if number >= len(panels) - wide:
                ax.set_xlabel("position $i$ in the sequence")
        for ax in grid[:, 0]:
            ax.set_ylabel("KL to the true distribution (nats)")
        style.legend(figure, looks, columns=columns, note=note)
    return figure


def papers_axes(ax: Axes, panel: Panel) -> None:
    """Set the axes of the paper's Fig. 4: positions from 0 to the length, the KL from
    1e-4 to 1.
    """
    length = len(next(iter(panel.kl.values())).mean) + 1
    ax.set(xlim=(0, length), ylim=KL_RANGE)
    step = next((step for step in (2, 4, 8, 16, 32) if length / step <= 4), length // 4)
    ax.set_xticks(range(0, length + 1, step))


def draw_curves(
    ax: Axes,
    max_lag: int,
    kl: Mapping[str, Curve],
    looks: Mapping[str, style.Look],
    bands: Mapping[str, Band],
) -> None:
    """Draw one panel's curves. A band in `bands` replaces the standard error."""
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
