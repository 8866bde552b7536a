"""The panels of `scaling`: curves along the sequence, with their means by depth and by
heads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from sih.paper.kl_panels import CUT, draw_curves, papers_axes
from sih.paper.scaling import (
    ScalingCurves,
)
from sih.results import style
from sih.results.curves import CIRCUIT, Compared, Panel, minus
from sih.results.tables import Rows, braces, with_error

CAPTION = (
    "KL divergence of the predicted from the true next-token distribution (nats) for standard transformers of "
    "different depth (top, lags {1,2,3}, preset auto, with SOAP, unless the label has Adam) and with different "
    "numbers of second-layer heads (lags {1,2,3,4,5}; beside them the construction with as many): trained as in the "
    "paper, at length 32 (middle), and by preset auto, at length 128 (bottom). Left: along the sequence. Right: "
    "means past the first max_lag positions; lines mark ML and BMA. All of a row on the same fresh sequences, the KL "
    "averaged over the lag given the tokens; bands and bars are one standard error over sequences, seeds averaged. "
) + CUT

_REFERENCES: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
}

_DASHES: tuple[Any, ...] = ("-", (0, (4, 1)), (0, (3, 1, 1, 1)), (0, (1, 0.6)))

_DEPTHS = {1: style.YELLOW, 2: style.ORANGE, 3: style.GREEN, 4: style.BLUE, 5: style.PURPLE}

_HEADS = (
    style.PURPLE,
    style.ORANGE,
    style.SKY,
    style.GREEN,
    style.YELLOW,
    style.BLUE,
    "0.5",
)  # distinguishes 7 heads from 1


def draw(data: ScalingCurves) -> Figure:
    """Draw one row for depth, and one for heads per training: curves on the left, means
    on the right.
    """
    with style.paper_figure(style.PAGE, 7.2) as figure:
        (depth_curves, by_depth), *rows = figure.subplots(3, 2, width_ratios=(1.25, 1))
        looks = _depth_looks(data.layers)
        _draw_by_position(depth_curves, data.layers, looks, "preset auto or harmonic")
        _draw_by_depth(by_depth, data.layers, looks)
        ways = {"unaided Adam": data.plain_heads, "preset auto": data.heads}
        for (curves, by_heads), (way, panel) in zip(rows, ways.items(), strict=True):
            looks = _head_looks(panel)
            _draw_by_position(curves, panel, looks, way)
            _draw_by_heads(by_heads, panel, looks)
        if data.missing:
            figure.supxlabel(style.not_shipped(data.missing), fontsize=6)
    return figure


def _depth_looks(panel: Panel) -> dict[str, style.Look]:
    """Return a colour for each depth, with different dashes for models of one depth."""
    looks, depths = dict(_REFERENCES), [len(of.heads) for of in _models(panel).values()]
    for i, label in enumerate(_models(panel)):
        dashes = _DASHES[depths[:i].count(depths[i]) % len(_DASHES)]
        looks[label] = (_DEPTHS.get(depths[i], style.SKY), dashes, 1.2)
    return looks


def _head_looks(panel: Panel) -> dict[str, style.Look]:
    """Return a colour for each number of second-layer heads."""
    return _REFERENCES | {
        label: (_HEADS[of.heads[1] % len(_HEADS)], "-", 1.2) for label, of in _models(panel).items()
    }


def _models(panel: Panel) -> dict[str, Compared]:
    return {label: of for label, of in panel.compared.items() if of.trained}


def _draw_by_position(ax: Axes, panel: Panel, looks: Mapping[str, style.Look], way: str) -> None:
    draw_curves(ax, panel.lags[-1], {label: panel.kl[label] for label in looks}, looks, {})
    papers_axes(ax, panel)
    ax.set(title=f"lags {braces(panel.lags)}, {way}", xlabel="position $i$ in the sequence")
    ax.set_ylabel("KL to the true distribution (nats)")


def _draw_by_depth(ax: Axes, panel: Panel, looks: Mapping[str, style.Look]) -> None:
    names = list(_models(panel))
    means = {name: found.whole.pair() for name, found in panel.kl.items()}
    floor = 0.8 * means["BMA"][0]
    for row, name in enumerate(names):
        colour, dashes, width = looks[name]
        mean, error = means[name]
        ax.plot([floor, mean], [row, row], color=colour, linestyle=dashes, lw=width)
        ax.errorbar(mean, row, xerr=error, color=colour, fmt="o", ms=3, lw=0.8, capsize=1.5)
    for name, (colour, dashes, width) in _REFERENCES.items():
        ax.axvline(means[name][0], color=colour, linestyle=dashes, lw=width, label=name)
    ax.set(xscale="log", xlim=(floor, 1.2 * max(mean for mean, _ in means.values())))
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.set(title="by heads of each layer", xlabel="mean KL (nats)")
    _plain(ax.xaxis)
    ax.legend(loc="lower right")


def _draw_by_heads(ax: Axes, panel: Panel, looks: Mapping[str, style.Look]) -> None:
    """Draw points in the colours of the curves beside them, in the order of the number
    of heads.
    """
    trained = sorted((of.heads[1], label) for label, of in _models(panel).items())
    written = sorted(
        (of.heads[1], label) for label, of in panel.compared.items() if of.kind == CIRCUIT
    )
    kl = {name: found.whole.pair() for name, found in panel.kl.items()}
    bars: dict[str, Any] = {"lw": 0.8, "capsize": 1.5, "ms": 3.5}
    for count, name in trained:
        mean, error = kl[name]
        ax.errorbar(count, mean, yerr=error, color=looks[name][0], fmt="o", zorder=3, **bars)
    ax.plot(
        [n for n, _ in trained],
        [kl[name][0] for _, name in trained],
        color=style.BLACK,
        lw=0.6,
        alpha=0.6,
    )
    ax.plot([], [], color=style.BLACK, marker="o", ms=3.5, lw=0.6, label="trained")
    means = [kl[name][0] for _, name in written]
    errors = [kl[name][1] for _, name in written]
    bars |= {
        "color": style.BLACK,
        "marker": "s",
        "mfc": "white",
        "ls": ":",
        "label": "construction",
    }
    ax.errorbar([n for n, _ in written], means, yerr=errors, **bars)
    for name, (colour, dashes, width) in _REFERENCES.items():
        ax.axhline(kl[name][0], color=colour, linestyle=dashes, lw=width, label=name)
    ax.set(
        yscale="log", title="by heads of the second layer", xlabel="heads", ylabel="mean KL (nats)"
    )
    _plain(ax.yaxis)
    ax.legend(loc="best")


def _plain(axis: Axis) -> None:
    """Set decimal labels on a logarithmic axis of less than two decades."""
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def table(data: ScalingCurves) -> Rows:
    """Return one row per curve: mean KL beyond the first max_lag positions, and minus
    ML's and BMA's.
    """
    rows = [["lags", "length", "heads", "mean KL", "minus ML", "minus BMA"]]
    for row in (data.layers, data.plain_heads, data.heads):
        for label, found in row.kl.items():
            others = {other: row.kl[other] for other in ("ML", "BMA")}
            less = [
                "" if label == other else with_error(*minus(found, curve).pair())
                for other, curve in others.items()
            ]
            length = str(len(found.mean) + 1)
            rows.append([braces(row.lags), length, label, str(found), *less])
    return rows
