"""Least numbers of second-layer heads: over all small lag sets, and the drawing of one pattern.

Beyond the paper, which leaves the number open between the number of lags and max - min + 1 (Sec. 5.4).
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from sih.construction import Pattern, least_heads
from sih.figures import style

NAME = "heads"
CAPTION = (
    "Least number of second-layer heads that keep all transitions apart, for every set of lags up to the largest, "
    "against the number of lags (left) and their span (right); a cell says how many sets. Each number is proved by a "
    "colouring and a segment of the integers that fewer colours cannot do; nothing is random. No models are trained."
)

COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#ccbb44",
    "#66ccee",
    "#aa3377",
    "#ee8866",
    "#44bb99",
    "#99ddff",
    "#bbbbbb",
)


@dataclass(frozen=True)
class Config:
    largest: int = 12
    """All non-empty sets of lags up to this one."""
    time_limit: float = 10.0


@dataclass(frozen=True)
class Table:
    """How many lag sets have so many lags, such a span (max - min + 1) and such a least number of heads."""

    largest: int
    counts: dict[tuple[int, int, int], int]
    """(number of lags, span, heads) -> how many sets"""
    unsettled: tuple[tuple[int, ...], ...]
    """Sets for which time ran out; they are counted at the number of heads that is known to do."""

    def by(self, axis: int) -> dict[tuple[int, int], int]:
        """(number of lags if axis is 0, span if it is 1; heads) -> how many sets."""
        total: Counter[tuple[int, int]] = Counter()
        for key, number in self.counts.items():
            total[key[axis], key[2]] += number
        return dict(total)

    def to_dict(self) -> dict[str, Any]:
        counts = [[*key, number] for key, number in sorted(self.counts.items())]
        return {"largest": self.largest, "counts": counts, "unsettled": self.unsettled}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Table:
        counts = {(lags, span, heads): number for lags, span, heads, number in values["counts"]}
        return cls(values["largest"], counts, tuple(map(tuple, values["unsettled"])))


def config() -> Config:
    return Config()


def compute(config: Config) -> Table:
    """The least number of heads of every non-empty set of lags up to `config.largest`."""
    if config.largest < 1:
        raise ValueError(f"largest is the largest lag, at least 1; got {config.largest}")
    counts: Counter[tuple[int, int, int]] = Counter()
    unsettled = []
    for number in range(1, config.largest + 1):
        for lags in itertools.combinations(range(1, config.largest + 1), number):
            answer = least_heads(lags, time_limit=config.time_limit)
            counts[number, lags[-1] - lags[0] + 1, answer.heads] += 1
            if not answer.exact:
                unsettled.append(lags)
    return Table(config.largest, dict(counts), tuple(unsettled))


def draw(table: Table) -> Figure:
    """Least heads against the number of lags (never fewer) and against the span (never more: the paper's bound)."""
    with style.paper_style():
        return _draw(table)


def _draw(table: Table) -> Figure:
    figure = Figure(figsize=(style.PAGE, 3.6))
    panels = figure.subplots(1, 2, sharey=True)
    titles = ("number of lags", "span of the lags, max − min + 1")
    bounds = ("number of lags: no fewer heads do", "span: the paper's bound, enough")
    for axis, axes in enumerate(panels):
        counts = table.by(axis)
        for (x, y), number in counts.items():
            column = sum(n for (other, _), n in counts.items() if other == x)
            axes.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, color=COLOURS[0], alpha=0.15 + 0.85 * number / column, lw=0)
            )
            shade = "white" if number / column > 0.5 else "black"
            axes.text(x, y, str(number), ha="center", va="center", fontsize=6, color=shade)
        ends = [0.5, table.largest + 0.5]
        axes.plot(ends, ends, color=COLOURS[1], lw=1, label=bounds[axis])
        axes.set(xlabel=titles[axis], xlim=ends, ylim=ends, xticks=range(1, table.largest + 1), aspect="equal")
        axes.legend(loc="lower right" if axis == 0 else "upper left")
    panels[0].set(ylabel="least number of heads", yticks=range(1, table.largest + 1))
    figure.suptitle(
        f"Least heads of the {sum(table.counts.values()):,} lag sets within 1 .. {table.largest}; in a cell: sets",
        fontsize=8,
    )
    return figure


def draw_pattern(pattern: Pattern) -> Figure:
    """Above, which head takes which offset; below, where each head then stores which lag: no cell is used twice."""
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
    lags = ", ".join(map(str, pattern.lags))
    top.set(
        title=f"lags {{{lags}}}: {needed} take {share}, period {pattern.period}",
        xlabel="offset o of the attended position i − o",
    )
    bottom.set(title="where the head stores lag k of position i − o", xlabel="o + k, for stream index i − o − k")
    for axes in (top, bottom):
        axes.set(
            ylabel="head",
            yticks=range(pattern.heads),
            xlim=(-0.5, columns - 0.5),
            ylim=(pattern.heads - 0.5, -0.5),
        )
        axes.tick_params(labelbottom=True)
        axes.set_aspect("equal")
        for edge in range(0, columns, pattern.period):
            axes.axvline(edge - 0.5, color="#444444", lw=0.8, ls=":")
    return figure


def _cell(axes: Axes, x: int, y: int, colour: str, text: str) -> None:
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, edgecolor="white", lw=0.8))
    axes.text(x, y, text, ha="center", va="center", fontsize=7, color="black")
