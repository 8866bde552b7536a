"""Shares of attention along the sequence, a panel for each lag set."""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.analysis.distances import Agreement
from sih.experiments.agreement import Agreements
from sih.results import style
from sih.results.experiment import braces
from sih.results.models import Models

_COLOURS = {
    "standard, plainly trained": style.RED,
    "disentangled, plainly trained": style.PURPLE,
    "standard, our recipe": style.BLUE,
    "disentangled, our recipe": style.GREEN,
}
_LOOKS: dict[str, style.Look] = {
    **{f"{which}: true lag": (colour, "-", 0.9) for which, colour in _COLOURS.items()},
    **{f"{which}: all lags": (colour, (0, (1, 1)), 0.9) for which, colour in _COLOURS.items()},
    "construction: true lag": (style.ORANGE, (0, (4, 1)), 0.9),
    "posterior of the true lag": (style.BLACK, "-", 0.9),
}


def draw_agreement(data: Agreements) -> Figure:
    """Draw a panel for each lag set: every model with the circuit's heads, its kind and way of training by colour."""
    panels: dict[tuple[int, ...], list[tuple[str, Agreement]]] = {}
    shown = {
        name: one
        for name, one in data.facts.items()
        if one in Models(heads="needed", usual_width=True)
    }
    for name, one in sorted(shown.items(), key=lambda item: item[1].training != "paper"):
        way = "plainly trained" if one.training == "paper" else "our recipe"
        panels.setdefault(one.lags, []).append((f"{one.kind}, {way}", data.models[name]))
    columns = max(1, min(3, len(panels)))
    rows = max(1, math.ceil(len(panels) / columns))
    with style.paper_figure(style.PAGE, 0.6 + 1.75 * rows) as figure:
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for ax in axes.flat[len(panels) :]:
            ax.set_visible(False)
        for ax, (lags, entries) in zip(axes.flat, panels.items(), strict=False):
            for which, entry in entries:
                _curve(ax, entry, "selected", f"{which}: true lag")
                _curve(ax, entry, "candidates", f"{which}: all lags")
            longest = max(
                (entry for _, entry in entries),
                key=lambda entry: len(entry.by_position["posterior"]),
            )
            _curve(ax, longest, "constructed", "construction: true lag")
            _curve(ax, longest, "posterior", "posterior of the true lag")
            ax.set_title(f"lags {braces(lags)}")
            style.doubling_positions(ax, lags[-1], lags[-1] + len(longest.by_position["posterior"]))
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        axes[0, 0].set_ylim(0, 1.03)
        for ax in axes[:, 0]:
            ax.set_ylabel("share of layer 3")
        for ax in axes[-1]:
            ax.set_xlabel("position $i$")
        style.legend(figure, _LOOKS, 3, style.not_shipped(data.missing))
    return figure


def _curve(ax: Axes, entry: Agreement, what: str, label: str) -> None:
    along = entry.by_position[what], entry.by_position_error[what]
    mean, error = (torch.tensor(values, dtype=torch.float64) for values in along)
    positions = torch.arange(len(mean)) + entry.lags[-1]
    colour, dashes, width = _LOOKS.get(label, (style.SKY, "-", 0.9))
    ax.plot(positions, mean, color=colour, linestyle=dashes, lw=width, label=label)
    ax.fill_between(positions, mean - error, mean + error, color=colour, alpha=0.15, lw=0)
