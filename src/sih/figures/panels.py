"""What panels of curves share: looks, an axis of doubling positions, one legend, a note of what is missing."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

Look = tuple[str, Any, float]
"""Colour, dashes, line width."""


def doubling_positions(ax: Axes, first: int, last: int) -> None:
    """Make the axis of positions logarithmic, with a tick where their number doubles, to show short sequences too."""
    ticks = [2**n for n in range(64) if first <= 2**n <= last + 1]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xlim(first, last + 1)


def legend(figure: Figure, looks: Mapping[str, Look], columns: int, note: str = "") -> None:
    """Draw one legend for all panels, each curve once, and above it a note, of what is missing."""
    found: dict[Any, Any] = {}
    for ax in figure.axes:
        found.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    names = [*(name for name in looks if name in found), *(name for name in found if name not in looks)]
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside lower center", ncols=columns, title=note, title_fontsize=6)


def not_shipped(names: Sequence[str]) -> str:
    """Write a note of the models that a figure would show if they were there, empty if none is missing."""
    return textwrap.fill(f"not shipped: {', '.join(names)}", 110, break_on_hyphens=False) if names else ""
