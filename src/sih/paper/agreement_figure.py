"""Shares of attention along the sequence, one panel per lag set."""

from __future__ import annotations

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.attention.distances import (
    Agreement,
    Measured,
    summary,
)
from sih.paper.agreement import (
    Agreements,
)
from sih.results import style
from sih.results.models import Models
from sih.results.tables import Rows, braces, with_error

CAPTION = (
    "Share of the third layer's attention on the token that the true lag copies (solid) and on those of all lags "
    "together (dotted), against the position, a curve for each model that has as many heads as the circuit needs, and "
    "for the construction: models trained as in the paper (at length 32, and {1,2,3} at 64 and 128 too) or by the "
    "presets auto and harmonic; black, the posterior of the true lag. Means over fresh sequences of each model's "
    "task, bands one standard error over sequences. Lag 1 copies the query's own token, which the residual stream "
    "holds anyway: there a low share need not mean a wrong choice."
)

_COLOURS = {
    "standard, unaided Adam": style.RED,
    "disentangled, unaided Adam": style.PURPLE,
    "standard, preset auto or harmonic": style.BLUE,
    "disentangled, preset auto or harmonic": style.GREEN,
}

_LOOKS: dict[str, style.Look] = {
    **{f"{which}: true lag": (colour, "-", 0.9) for which, colour in _COLOURS.items()},
    **{f"{which}: all lags": (colour, (0, (1, 1)), 0.9) for which, colour in _COLOURS.items()},
    "construction: true lag": (style.ORANGE, (0, (4, 1)), 0.9),
    "posterior of the true lag": (style.BLACK, "-", 0.9),
}


def draw(data: Agreements) -> Figure:
    """Draw one panel per lag set: every model with the circuit's heads, coloured by
    kind and training.
    """
    panels: dict[tuple[int, ...], list[tuple[str, Agreement]]] = {}
    shown = {
        name: one
        for name, one in data.facts.items()
        if one in Models(heads="needed", usual_width=True)
    }
    for name, one in sorted(shown.items(), key=lambda item: item[1].training != "paper"):
        way = "unaided Adam" if one.training == "paper" else "preset auto or harmonic"
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
    mean, error = entry.by_position[what].double(), entry.by_position_error[what].double()
    positions = torch.arange(len(mean)) + entry.lags[-1]
    colour, dashes, width = _LOOKS.get(label, (style.SKY, "-", 0.9))
    ax.plot(positions, mean, color=colour, linestyle=dashes, lw=width, label=label)
    ax.fill_between(positions, mean - error, mean + error, color=colour, alpha=0.15, lw=0)


def table(data: Agreements) -> Rows:
    """Return one row per model, then one per configuration with several seeds (errors
    over seeds there).
    """
    each = {name: summary(found) for name, found in data.models.items()}
    keys = list(dict.fromkeys(key for numbers in each.values() for key in numbers))
    selecting = ["selected", "posterior", "selected / posterior", "sequences"]
    rows = [
        ["model", *(key for key in keys if key != "selected"), *selecting, "uniform, layers 1 2 3"]
    ]
    keys = [key for key in keys if key != "selected"]
    for name, found in data.models.items():
        flat = [f"{value:.2f}".replace("0.", ".") for value, _ in found.uniform.values()]
        one = data.selection[name]
        shares = [
            *(with_error(*pair) for pair in (one.selected, one.posterior, one.relative)),
            str(one.sequences),
        ]
        rows.append([name, *_cells(keys, each[name]), *shares, " ".join(flat)])
    for name, numbers in data.seeds.items():
        shares = [*_cells(["selected"], numbers), "", "", ""]
        rows.append([f"{name}, over seeds", *_cells(keys, numbers), *shares, ""])
    return rows


def _cells(keys: list[str], numbers: dict[str, Measured]) -> list[str]:
    return [with_error(*numbers[key]) if key in numbers else "" for key in keys]
