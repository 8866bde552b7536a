"""Heads and their cells: which head gathers which offset."""

from __future__ import annotations

from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sih.base.errors import FieldError
from sih.circuits import Circuit
from sih.heads import Pattern
from sih.results import style
from sih.results.plots.profile import draw_profile

COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#44bb99", "#99ddff", "#bbbbbb",
)  # fmt: skip


def draw_pattern(data: Pattern) -> Figure:
    """Draw above which head gathers which offset, and below where it then stores which
    lag: no cell is used twice.
    """
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
    """Draw which second-layer head gathers which offset, or the weights and reads of
    heads that mix lags.
    """
    if data.mixing is not None:
        return draw_profile(data.mixing)
    colours = data.pattern
    if not colours:
        says = "this circuit's heads do not share out the past; its model's passes have pictures"
        raise FieldError("circuit", says)
    return draw_pattern(Pattern(data.lags, colours, max(colours) + 1, Fraction(1)))


def _cell(axes: Axes, x: int, y: int, colour: str, text: str, size: float) -> None:
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color="black")
