"""Cells that are counted or owned: least heads of many lag sets, and which head takes which offset."""

from collections import Counter

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sih.construction import Pattern
from sih.experiments.head_counts import HeadCounts
from sih.figures import style

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#99ddff", "#bbbbbb",
)  # fmt: skip


def draw_head_counts(data: HeadCounts) -> Figure:
    """Draw least heads against the number of lags (never fewer) and the span (never more: the paper's bound)."""
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
        title = f"Least heads of the {data.sets:,} lag sets within 1 .. {data.largest}; in a cell: sets"
        figure.suptitle(title, fontsize=8)
    return figure


def _draw_counts(ax: Axes, found: list[tuple[int, int, int]]) -> None:
    """Draw a cell for each x and number of heads, as dark as its part of the column, with how many sets it has."""
    cells: Counter[tuple[int, int]] = Counter()
    columns: Counter[int] = Counter()
    for x, heads, sets in found:
        cells[x, heads] += sets
        columns[x] += sets
    for (x, heads), sets in cells.items():
        part = sets / columns[x]
        ax.add_patch(Rectangle((x - 0.5, heads - 0.5), 1, 1, color=COLOURS[0], alpha=0.15 + 0.85 * part, lw=0))
        ax.text(x, heads, str(sets), ha="center", va="center", fontsize=6, color="white" if part > 0.5 else "black")


def draw_pattern(pattern: Pattern) -> Figure:
    """Draw above which head takes which offset, and below where it then stores which lag: no cell is used twice."""
    columns = min(max(2 * pattern.period, 16), 64)
    width = max(6.0, 0.24 * columns + 0.8)
    height = 0.9 + (width - 0.8) / columns * pattern.heads
    figure = Figure(figsize=(width, 2 * height), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True)
    for o in range(columns):
        head = pattern.colours[o % pattern.period]
        if head >= 0:
            _cell(top, o, head, COLOURS[head % len(COLOURS)], str(head))
        for n, k in enumerate(pattern.lags):
            if head >= 0 and o + k < columns:
                _cell(bottom, o + k, head, COLOURS[n % len(COLOURS)], str(k))
    needed = f"{pattern.heads} head{'s' if pattern.heads > 1 else ''}"
    share = "every offset" if pattern.used == 1 else f"{pattern.used} of the offsets"
    title = f"lags {{{', '.join(map(str, pattern.lags))}}}: {needed} take {share}, period {pattern.period}"
    top.set(title=title, xlabel="offset o of the attended position i − o")
    bottom.set(title="where the head stores lag k of position i − o", xlabel="o + k, for stream index i − o − k")
    for axes in (top, bottom):
        axes.set(xlim=(-0.5, columns - 0.5), ylim=(pattern.heads - 0.5, -0.5), aspect="equal")
        axes.set(ylabel="head", yticks=range(pattern.heads))
        axes.tick_params(labelbottom=True)
        for edge in range(0, columns, pattern.period):
            axes.axvline(edge - 0.5, color="#444444", lw=0.8, ls=":")
    return figure


def _cell(axes: Axes, x: int, y: int, colour: str, text: str) -> None:
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=7, color="black")
