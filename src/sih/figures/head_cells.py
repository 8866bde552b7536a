"""Cells that are counted or owned: least heads of many lag sets, and which head takes which offset."""

from collections import Counter
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sih.construction import Circuit, Pattern
from sih.experiments.head_counts import HeadCounts
from sih.figures.profile_panels import draw_profile
from sih.results import style

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
        title = (
            f"Least heads of the {data.sets:,} lag sets within 1 .. {data.largest}; in a cell: sets"
        )
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


def draw_pattern(data: Pattern) -> Figure:
    """Draw above which head takes which offset, and below where it then stores which lag: no cell is used twice."""
    columns = min(max(2 * data.period, 16), 64)
    cell = (style.PAGE - 0.6) / columns
    size = min(6.0, 50 * cell)
    with style.paper_figure(style.PAGE, 2 * (0.75 + cell * data.heads)) as figure:
        top, bottom = figure.subplots(2, 1, sharex=True)
        for o in range(columns):
            head = data.colours[o % data.period]
            if head >= 0:
                _cell(top, o, head, COLOURS[head % len(COLOURS)], str(head), size)
            for n, k in enumerate(data.lags):
                if head >= 0 and o + k < columns:
                    _cell(bottom, o + k, head, COLOURS[n % len(COLOURS)], str(k), size)
        needed = f"{data.heads} head{'s' if data.heads > 1 else ''}"
        share = "every offset" if data.used == 1 else f"{data.used} of the offsets"
        title = f"lags {{{', '.join(map(str, data.lags))}}}: {needed} take {share}, period {data.period}"
        top.set(title=title, xlabel="offset o of the attended position i − o")
        bottom.set(
            title="where the head stores lag k of position i − o",
            xlabel="o + k, for stream index i − o − k",
        )
        for axes in (top, bottom):
            axes.set(
                xlim=(-0.5, columns - 0.5),
                ylim=(data.heads - 0.5, -0.5),
                aspect="equal",
                ylabel="head",
            )
            axes.set_yticks(range(data.heads))
            axes.tick_params(labelbottom=True)
            for edge in range(0, columns, data.period):
                axes.axvline(edge - 0.5, color="#444444", lw=0.8, ls=":")
    return figure


def draw_circuit(data: Circuit) -> Figure:
    """Draw which second-layer head takes which offset, or, where heads mix lags, their weights and reads."""
    if data.profile is not None:
        return draw_profile(data.profile)
    colours = data.head_of_offset
    return draw_pattern(Pattern(data.lags, colours, max(colours) + 1, Fraction(1)))


def _cell(axes: Axes, x: int, y: int, colour: str, text: str, size: float) -> None:
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color="black")
