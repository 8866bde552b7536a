"""KL along the sequence, a panel for each lag set: the form of the paper's Fig. 4."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.cells import braces
from sih.experiments.constructions import ConstructionCurves
from sih.experiments.curves import Line
from sih.experiments.reference_predictors import PredictorCurves
from sih.experiments.trained import TrainedCurves
from sih.figures import style
from sih.figures.panels import Look, double, legend, not_shipped

Band = tuple[Sequence[float], Sequence[float]]
"""Its lower and its upper edge, along the positions."""
LOWEST = 1e-9
"""Stands for 0 on the logarithmic axis, far below what is shown."""

_PREDICTORS: dict[str, Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "selective, sum (β=3)": (style.GREEN, (0, (4, 1)), 1.2),
    "selective, mean (β=100)": (style.BLUE, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "n-gram in context": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "stationary law": (style.ORANGE, (0, (5, 2)), 1.2),
}
_CONSTRUCTIONS: dict[str, Look] = {
    "BMA": (style.BLACK, "-", 2.4),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "construction": (style.BLUE, "-", 1.2),
    "construction, 1 head": (style.SKY, (0, (4, 1)), 1.2),
    "two lags, 1 head": (style.PURPLE, (0, (3, 1, 1, 1)), 1.2),
    "Bayes-optimal construction": (style.ORANGE, (0, (5, 2)), 1.2),
}
_TRAINED: dict[str, Look] = {
    "BMA": (style.BLACK, "-", 2.4),
    "Bayes-optimal construction": (style.ORANGE, (0, (5, 2)), 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    "construction": (style.BLUE, "-", 1.2),
    "construction, 1 head": (style.SKY, (0, (4, 1)), 1.2),
    "two lags, 1 head": (style.BLUE, (0, (3, 1, 1, 1)), 1.2),
    "trained standard": (style.GREEN, "-", 1.2),
    "trained standard, 1 head": (style.GREEN, (0, (4, 1)), 0.9),
    "trained disentangled": (style.PURPLE, "-", 1.2),
    "trained disentangled, 1 head": (style.PURPLE, (0, (4, 1)), 0.9),
}


def draw_predictors(curves: PredictorCurves) -> Figure:
    sets = curves.config.lag_sets
    looks = {name: _PREDICTORS.get(name, (style.SKY, ":", 1.2)) for name in curves.kl[0]}
    return draw_panels(sets, [f"lags {braces(lags)}" for lags in sets], curves.kl, curves.kl_error, looks)


def draw_constructions(curves: ConstructionCurves) -> Figure:
    sets = curves.config.lag_sets
    counts = [heads["construction"] for heads in curves.heads]
    titles = [f"lags {braces(lags)}, least heads: {count}" for lags, count in zip(sets, counts, strict=True)]
    return draw_panels(sets, titles, curves.kl, curves.kl_error, _CONSTRUCTIONS)


def draw_trained(data: TrainedCurves) -> Figure:
    titles = [
        f"lags {braces(p.lags)}, least heads: {h['construction']}" for p, h in zip(data.panels, data.heads, strict=True)
    ]
    return draw_panels(
        [p.lags for p in data.panels],
        titles,
        [{name: found.along for name, found in p.kl.items()} for p in data.panels],
        [{name: found.along_error for name, found in p.kl.items()} for p in data.panels],
        _TRAINED,
        [_over_seeds(runs, seeds) for runs, seeds in zip(data.runs, data.seeds, strict=True)],
        floor=0.2 / data.config.sequences,  # late errors are rare and cost some tenths of a nat each
        log_positions=True,
        note=not_shipped(data.missing),
    )


def _over_seeds(runs: Mapping[str, list[str]], seeds: Mapping[str, Line]) -> dict[str, Band]:
    """The lowest and the highest seed at every position, of the curves that have several."""
    several = {name: [seeds[run].along for run in group] for name, group in runs.items() if len(group) > 1}
    return {
        name: tuple([edge(values) for values in zip(*each, strict=True)] for edge in (min, max))  # type: ignore[misc]
        for name, each in several.items()
    }


def draw_panels(
    lag_sets: Sequence[Sequence[int]],
    titles: Sequence[str],
    kl: Sequence[Mapping[str, list[float]]],
    kl_error: Sequence[Mapping[str, list[float]]],
    looks: Mapping[str, Look],
    bands: Sequence[Mapping[str, Band]] | None = None,
    floor: float = 2e-6,
    log_positions: bool = False,
    note: str = "",
) -> Figure:
    """From the first position whose next token a lag has made, two panels a row, one legend in the order of `looks`.

    Bands are one standard error either way, unless `bands` says otherwise; below `floor` nothing is shown.
    """
    rows = math.ceil(len(lag_sets) / 2)
    below = math.ceil(len({name for curves in kl for name in curves}) / 3) + len(note.splitlines())  # lines of text
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.3 + 1.8 * rows + 0.15 * below))
        grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
        for number, ax in enumerate(grid.flat):
            if number >= len(lag_sets):
                ax.set_visible(False)
                continue
            draw_lines(ax, lag_sets[number][-1], kl[number], kl_error[number], looks, bands[number] if bands else {})
            ax.set_ylim(floor, 2)
            ax.set_title(titles[number])
            last = len(next(iter(kl[number].values())))
            if log_positions:
                double(ax, min(lags[-1] for lags in lag_sets), last)
            else:
                ax.set_xlim(0, last)
            if number >= len(lag_sets) - 2:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("position $i$ in the sequence")
        for ax in grid[:, 0]:
            ax.set_ylabel("KL to the true law (nats)")
        legend(figure, looks, columns=3, note=note)
    return figure


def draw_lines(
    ax: Axes,
    max_lag: int,
    kl: Mapping[str, list[float]],
    kl_error: Mapping[str, list[float]],
    looks: Mapping[str, Look],
    bands: Mapping[str, Band],
) -> None:
    """One panel's curves; a curve with a band in `bands` has that one instead of its standard error."""
    first = max_lag - 1
    for name, values in kl.items():
        colour, dashes, width = looks[name]
        positions = torch.arange(first + 1, len(values) + 1)
        y, spread = torch.tensor(values), torch.tensor(kl_error[name])
        low, high = (torch.as_tensor(edge) for edge in bands.get(name, (y - spread, y + spread)))
        low, y, high = (edge[first:].clamp_min(LOWEST) for edge in (low, y, high))
        ax.plot(positions, y, color=colour, linestyle=dashes, lw=width, label=name)
        ax.fill_between(positions, low, high, color=colour, alpha=0.15, lw=0)
    ax.set_yscale("log")
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
