"""KL along the sequence, a panel a lag set: the form of the paper's Fig. 4, and the means behind it."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sih.figures import style

Look = tuple[str, Any, float]
"""Colour, dashes, line width."""
Band = tuple[Sequence[float], Sequence[float]]
"""Its lower and its upper edge, along the positions."""
LOWEST = 1e-9
"""Stands for 0 on the logarithmic axis, far below what is shown."""


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


def double(ax: Axes, first: int, last: int) -> None:
    """A logarithmic axis of positions with a tick where their number doubles, to show short sequences too."""
    ticks = [2**n for n in range(64) if first <= 2**n <= last + 1]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xlim(first, last + 1)


def legend(figure: Figure, looks: Mapping[str, Look], columns: int, note: str = "") -> None:
    """One legend for all panels, each curve once; a note, of what is missing, stands above it."""
    found: dict[Any, Any] = {}
    for ax in figure.axes:
        found.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    names = [name for name in looks if name in found]
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, title=note, title_fontsize=6)


def not_shipped(names: Sequence[str]) -> str:
    """A note of the models that a figure would show if they were there; empty if none is missing."""
    return textwrap.fill(f"not shipped: {', '.join(names)}", 110, break_on_hyphens=False) if names else ""


def braces(lags: Sequence[int]) -> str:
    return "{" + ",".join(map(str, lags)) + "}"


def mean(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).mean(dim=0)


def standard_error(values: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(values)).std(dim=0) / math.sqrt(len(values))
