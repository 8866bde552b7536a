"""The panels of `scaling`: curves along the sequence, and their means by depth and by heads.

A model is named by the heads of its layers, "[1,3,1]"; a circuit by its second layer's, "construction, 3".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sih.experiments.cells import braces
from sih.experiments.curves import Panel
from sih.experiments.scaling import ScalingCurves
from sih.figures import style
from sih.figures.kl_curves import draw_lines
from sih.figures.panels import Look, double, not_shipped

_REFERENCES: dict[str, Look] = {"BMA": (style.BLACK, "-", 1.2), "ML": (style.RED, (0, (1, 1)), 1.2)}
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1)), (0, (3, 1, 1, 1)), (0, (1, 0.6)))
_DEPTHS = {1: style.YELLOW, 2: style.ORANGE, 3: style.GREEN, 4: style.BLUE, 5: style.PURPLE}
_HEADS = (style.PURPLE, style.ORANGE, style.SKY, style.GREEN, style.YELLOW, style.BLUE)


def depth_looks(panel: Panel) -> dict[str, Look]:
    """A colour for each depth, dashes for the models of one."""
    looks, depths = dict(_REFERENCES), [len(_heads(name)) for name in _models(panel)]
    for i, name in enumerate(_models(panel)):
        dashes = _DASHES[depths[:i].count(depths[i]) % len(_DASHES)]
        looks[name] = (_DEPTHS.get(depths[i], style.SKY), dashes, 1.2)
    return looks


def head_looks(panel: Panel) -> dict[str, Look]:
    """A colour for each number of second-layer heads."""
    return _REFERENCES | {name: (_HEADS[_heads(name)[1] % len(_HEADS)], "-", 1.2) for name in _models(panel)}


def _models(panel: Panel) -> list[str]:
    return [name for name in panel.kl if name.startswith("[")]


def _heads(name: str) -> list[int]:
    return [int(count) for count in name[1 : name.index("]")].split(",")]


def draw_along(ax: Axes, panel: Panel, looks: Mapping[str, Look], floor: float) -> None:
    shown = {name: panel.kl[name] for name in looks}
    along, error = ({name: getattr(line, part) for name, line in shown.items()} for part in ("along", "along_error"))
    draw_lines(ax, panel.lags[-1], along, error, looks, {})
    ax.set_ylim(floor, 1)
    double(ax, panel.lags[-1], len(along["ML"]))
    ax.set(
        title=f"lags {braces(panel.lags)}", xlabel="position $i$ in the sequence", ylabel="KL to the true law (nats)"
    )


def draw_by_depth(ax: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    names = _models(panel)
    floor = 0.8 * panel.kl["BMA"].mean
    for row, name in enumerate(names):
        colour, dashes, width = looks[name]
        found = panel.kl[name]
        ax.plot([floor, found.mean], [row, row], color=colour, linestyle=dashes, lw=width)
        ax.errorbar(found.mean, row, xerr=found.mean_error, color=colour, fmt="o", ms=3, lw=0.8, capsize=1.5)
    for name, (colour, dashes, width) in _REFERENCES.items():
        ax.axvline(panel.kl[name].mean, color=colour, linestyle=dashes, lw=width, label=name)
    ax.set_xscale("log")
    ax.set_xlim(floor, 1.2 * max(found.mean for found in panel.kl.values()))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.set(title="by heads of each layer", xlabel="mean KL (nats)")
    _plain(ax.xaxis)
    ax.legend(loc="lower right")


def draw_by_heads(ax: Axes, panel: Panel, looks: Mapping[str, Look]) -> None:
    """Points in the colours of the curves beside them, in the order of the number of heads."""
    trained = sorted((_heads(name)[1], name) for name in _models(panel))
    written = sorted((int(name.split()[-1]), name) for name in panel.kl if name.startswith("construction"))
    bars: dict[str, Any] = {"lw": 0.8, "capsize": 1.5, "ms": 3.5}
    for count, name in trained:
        found = panel.kl[name]
        ax.errorbar(count, found.mean, yerr=found.mean_error, color=looks[name][0], fmt="o", zorder=3, **bars)
    ax.plot([n for n, _ in trained], [panel.kl[name].mean for _, name in trained], color=style.BLACK, lw=0.6, alpha=0.6)
    ax.plot([], [], color=style.BLACK, marker="o", ms=3.5, lw=0.6, label="trained")
    means, errors = ([getattr(panel.kl[name], part) for _, name in written] for part in ("mean", "mean_error"))
    bars |= {"color": style.BLACK, "marker": "s", "mfc": "white", "ls": ":", "label": "construction"}
    ax.errorbar([n for n, _ in written], means, yerr=errors, **bars)
    for name, (colour, dashes, width) in _REFERENCES.items():
        ax.axhline(panel.kl[name].mean, color=colour, linestyle=dashes, lw=width, label=name)
    ax.set_yscale("log")
    ax.set(title="by heads of the second layer", xlabel="heads", ylabel="mean KL (nats)")
    _plain(ax.yaxis)
    ax.legend(loc="best")


def _plain(axis: Axis) -> None:
    """Decimal numbers on a logarithmic axis of less than two decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_scaling(data: ScalingCurves) -> Figure:
    """A row for depth, a row for heads: curves on the left, means on the right."""
    floor = 0.2 / data.config.sequences  # late errors are rare and cost some tenths of a nat each
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 4.8))
        (along_depth, by_depth), (along_heads, by_heads) = figure.subplots(2, 2, width_ratios=(1.25, 1))
        depths, heads = depth_looks(data.layers), head_looks(data.heads)
        draw_along(along_depth, data.layers, depths, floor)
        draw_along(along_heads, data.heads, heads, floor)
        draw_by_depth(by_depth, data.layers, depths)
        draw_by_heads(by_heads, data.heads, heads)
        if data.missing:
            figure.supxlabel(not_shipped(data.missing), fontsize=6)
    return figure
