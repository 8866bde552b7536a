"""KL over Bayes against the number of heads, one panel per lag set."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sih.beyond.shared_heads.few_heads import (
    BOTH,
    EXACT,
    ML,
    PAPER,
    TRAINED,
    UNMIXED,
    FewHeads,
    FewHeadsConfig,
    Point,
)
from sih.results import style
from sih.results.tables import Rows, braces


def caption(config: FewHeadsConfig) -> str:
    """Return the caption for the requested task."""
    return (
        "Mean KL divergence from the true next-token distribution past the largest lag, over that of the "
        "Bayesian model average "
        f"on the same sequences, against the number of second-layer heads (T = {config.length}): the paper's "
        "construction, the Bayesian circuit in which nothing mixes, the exact circuit in which lags mix, "
        "circuits read "
        "from query and key, and standard transformers trained by preset auto (SOAP; layers restricted to "
        "their roles "
        "at first), each on the matrix it was trained on. The dotted line is maximum likelihood. Means over "
        f"{config.matrices} matrices with Dirichlet(1) rows and {config.num_states} states, and one standard error."
    )


LOOKS: dict[str, dict[str, Any]] = {
    PAPER: {"color": style.RED, "marker": "o", "ls": "-"},
    UNMIXED: {"color": style.BLUE, "marker": "s", "ls": "-"},
    BOTH: {"color": style.GREEN, "marker": "^", "ls": "-"},
    EXACT: {"color": style.GREEN, "marker": "*", "ls": "", "ms": 9},
    TRAINED: {"color": style.PURPLE, "marker": "x", "ls": ""},
}


def draw(data: FewHeads) -> Figure:
    """Draw the ratios of each form, with BMA at 1 and ML as lines."""
    with style.paper_figure(style.PAGE, 2.7) as figure:
        panels = figure.subplots(1, len(data.config.lag_sets), sharey=True, squeeze=False)[0]
        for ax, lags in zip(panels, data.config.lag_sets, strict=True):
            for series, look in LOOKS.items():
                points = sorted(
                    (p.heads, p.mean, p.error)
                    for p in data.points
                    if (p.lags, p.series) == (lags, series)
                )
                if points:
                    heads, mean, error = zip(*points, strict=True)
                    ax.errorbar(heads, mean, error, label=series, **{"ms": 4, "lw": 1, **look})
            for point in data.points:
                if (point.lags, point.series) == (lags, ML):
                    ax.axhline(point.mean, color=style.BLACK, lw=0.8, ls=(0, (1, 1.5)), label="ML")
            ax.axhline(1.0, color=style.BLACK, lw=0.8, label="BMA")
            ax.set(title=braces(lags), xlabel="second-layer heads", yscale="log")
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        panels[0].set_ylabel("KL / KL of BMA")
        panels[0].set_yticks([1, 2, 5, 10], labels=["1", "2", "5", "10"])
        handles = {
            label: handle
            for ax in panels
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=7, columnspacing=1.2
        )
    return figure


def table(data: FewHeads) -> Rows:
    """Return one row per lag set and form: KL over BMA's by number of heads."""
    most = max(point.heads for point in data.points)
    rows = [["lags", "", *(f"{heads} head{'s' * (heads > 1)}" for heads in range(1, most + 1))]]
    for lags in data.config.lag_sets:
        for series in (PAPER, UNMIXED, BOTH, EXACT, TRAINED, ML):
            cells = {
                p.heads or 1: _cell(p) for p in data.points if (p.lags, p.series) == (lags, series)
            }
            if cells:
                rows.append(
                    [braces(lags), series, *(cells.get(heads, "") for heads in range(1, most + 1))]
                )
    return rows


def _cell(point: Point) -> str:
    return f"{point.mean:.3f}" + (f"±{point.error:.3f}" if point.series != TRAINED else "")
