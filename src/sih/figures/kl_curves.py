"""KL along the sequence, a panel for each lag set: the form of the paper's Fig. 4."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.constructions import ConstructionCurves
from sih.experiments.reference_predictors import PredictorCurves
from sih.experiments.trained import TrainedCurves, TrainedPanel
from sih.results import style
from sih.results.curves import Curve, Panel
from sih.results.experiment import braces
from sih.results.models import usual_heads

Band = tuple[Sequence[float], Sequence[float]]
"""Its lower and its upper edge, along the positions."""
LOWEST = 1e-9
"""Stands for 0 on the logarithmic axis, far below what is shown."""

_PREDICTORS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "selective, sum (β=3)": (style.GREEN, (0, (4, 1)), 1.2),
    "selective, mean (β=100)": (style.BLUE, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "plug-in, P by counting": (style.SKY, (0, (4, 1)), 1.2),
    "n-gram in context": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "stationary law": (style.ORANGE, (0, (5, 2)), 1.2),
}
_CONSTRUCTIONS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 2.4),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "construction": (style.BLUE, "-", 1.2),
    "construction with a sink": (style.GREEN, (0, (2, 1)), 1.2),
    "construction, 1 head": (style.SKY, (0, (4, 1)), 1.2),
    "two lags, 1 head": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "Bayes-optimal construction": (style.ORANGE, (0, (5, 2)), 1.2),
}
_ORDER = ("BMA", "Bayes-optimal construction", "ML", "construction", "construction, 1 head")
_BESIDE_TRAINED = {name: _CONSTRUCTIONS[name] for name in _ORDER}
_BESIDE_TRAINED["two lags, 1 head"] = (style.BLUE, (0, (3, 1, 1, 1)), 1.2)
_KINDS = {"standard": style.GREEN, "disentangled": style.PURPLE}
_PLAIN = 2.0
"""How much wider the lines of models are that were trained as the paper trains."""
_OTHER_DASHES: tuple[Any, ...] = ((0, (2, 1)), (0, (1, 0.6)), (0, (3, 1, 1, 1)), (0, (6, 1)))


def draw_predictors(data: PredictorCurves) -> Figure:
    """Draw the reference predictors."""
    return draw_panels(
        data.panels, [f"lags {braces(panel.lags)}" for panel in data.panels], _PREDICTORS
    )


def draw_constructions(data: ConstructionCurves) -> Figure:
    """Draw the circuits written by hand, beside BMA and ML."""
    return draw_panels(data.panels, [_title(panel) for panel in data.panels], _CONSTRUCTIONS)


def draw_trained(data: TrainedCurves) -> Figure:
    """Draw trained models beside the circuits. A band over several seeds is their range."""
    return draw_panels(
        data.panels,
        [f"{_title(panel)}; length {panel.length}" for panel in data.panels],
        _BESIDE_TRAINED | _trained_looks(data.panels),
        [_seed_ranges(panel) for panel in data.panels],
        floor=0.2
        / data.config.sequences,  # late errors are rare and cost some tenths of a nat each
        log_positions=True,
        note=style.not_shipped(data.missing),
    )


def _title(panel: Panel) -> str:
    return f"lags {braces(panel.lags)}, least heads: {panel.compared['construction'].heads[1]}"


def _trained_looks(panels: Sequence[Panel]) -> dict[str, style.Look]:
    """Give each kind of model a colour, solid with as many heads as are needed, dashed with one, or with others."""
    found = {
        label: (of, panel.lags)
        for panel in panels
        for label, of in panel.compared.items()
        if of.trained
    }
    looks: dict[str, style.Look] = {}
    for kind in dict.fromkeys((*_KINDS, *(of.kind for of, _ in found.values()))):
        own = {label: (of.heads, lags) for label, (of, lags) in found.items() if of.kind == kind}
        usual = [label for label, (heads, lags) in own.items() if heads == usual_heads(lags)]
        single = [
            label for label, (heads, _) in own.items() if label not in usual and heads == (1, 1, 1)
        ]
        others = [label for label in own if label not in (*usual, *single)]
        lines = dict.fromkeys(usual, ("-", 1.2)) | dict.fromkeys(single, ((0, (4, 1)), 0.9))
        lines |= {
            label: (dashes, 0.9) for label, dashes in zip(others, itertools.cycle(_OTHER_DASHES))
        }
        for label, (dashes, width) in lines.items():
            looks[label] = (
                _KINDS.get(kind, style.YELLOW),
                dashes,
                width * (_PLAIN if found[label][0].plain else 1),
            )
    return looks


def _seed_ranges(panel: TrainedPanel) -> dict[str, Band]:
    """Find the lowest and the highest seed at every position, of the curves that have several."""
    several = {label: of.models for label, of in panel.compared.items() if len(of.models) > 1}
    each = {
        label: [panel.models[name].kl.by_position for name in names]
        for label, names in several.items()
    }
    return {label: ([*map(min, *values)], [*map(max, *values)]) for label, values in each.items()}


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
    last = max(
        len(next(iter(panel.kl.values())).by_position) for panel in panels
    )  # the axis is shared
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
            ax.set_ylabel("KL to the true law (nats)")
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
        positions = torch.arange(first + 1, len(curve.by_position) + 1)
        y, spread = (
            torch.tensor(each, dtype=torch.float64)
            for each in (curve.by_position, curve.by_position_error)
        )
        low, high = (
            torch.as_tensor(edge, dtype=torch.float64)
            for edge in bands.get(label, (y - spread, y + spread))
        )
        low, y, high = (edge[first:].clamp_min(LOWEST) for edge in (low, y, high))
        ax.plot(positions, y, color=colour, linestyle=dashes, lw=width, label=label)
        ax.fill_between(positions, low, high, color=colour, alpha=0.15, lw=0)
    ax.set_yscale("log")
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
