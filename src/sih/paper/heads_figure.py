"""Least numbers of heads: each cell shows its number of lag sets."""

from __future__ import annotations

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sih.paper.heads import HeadCounts
from sih.results import style

CAPTION = (
    "Least number of second-layer heads that keep all transitions apart, for every set of lags up "
    "to the largest, "
    "against the number of lags (left) and their span (right); each cell has its number of sets. "
    "Each number is proved by a "
    "colouring and a segment of the integers that fewer colours cannot do; nothing is random. No "
    "models are trained."
)

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#99ddff", "#bbbbbb",
)  # fmt: skip


def draw(data: HeadCounts) -> Figure:
    """Draw least heads against the number of lags (never fewer) and the span (never
    more: the paper's bound).
    """
    with style.paper_figure(style.PAGE, 3.6) as figure:
        by_lags, by_span = figure.subplots(1, 2, sharey=True)
        _draw_counts(by_lags, [(count.lags, count.heads, count.sets) for count in data.counts])
        _draw_counts(by_span, [(count.span, count.heads, count.sets) for count in data.counts])
        ends, ticks = [0.5, data.largest + 0.5], range(1, data.largest + 1)
        by_lags.plot(ends, ends, color=COLOURS[1], lw=1, label="number of lags: no fewer heads do")
        by_span.plot(ends, ends, color=COLOURS[1], lw=1, label="span: the paper's bound, enough")
        for ax in (by_lags, by_span):
            ax.set(xlim=ends, ylim=ends, xticks=ticks, aspect="equal")
        by_lags.set(xlabel="number of lags", ylabel="least number of heads", yticks=ticks)
        by_span.set(xlabel="span of the lags, max − min + 1")
        by_lags.legend(loc="lower right")
        by_span.legend(loc="upper left")
        title = (
            f"Least heads of the {data.sets:,} lag sets within 1 .. {data.largest}; in a cell: sets"
        )
        figure.suptitle(title, fontsize=8)
    return figure


def _draw_counts(ax: Axes, found: list[tuple[int, int, int]]) -> None:
    """Draw one cell per x and number of heads, shaded by its share of the column, with
    its number of sets.
    """
    cells: Counter[tuple[int, int]] = Counter()
    columns: Counter[int] = Counter()
    for x, heads, sets in found:
        cells[x, heads] += sets
        columns[x] += sets
    for (x, heads), sets in cells.items():
        part = sets / columns[x]
        ax.add_patch(
            Rectangle(
                (x - 0.5, heads - 0.5), 1, 1, color=COLOURS[0], alpha=0.15 + 0.85 * part, lw=0
            )
        )
        ax.text(
            x,
            heads,
            str(sets),
            ha="center",
            va="center",
            fontsize=6,
            color="white" if part > 0.5 else "black",
        )
