"""Separation of transitions in a mixing head: stored values and reads, each
contribution, and the sum for more lags.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sih.beyond.shared_heads.cancellation import Cancellation
from sih.results import style

CAPTION = (
    "Why lags may mix in a head. Left: two lags, one head with uniform attention. A transition at "
    "offset o leaves its "
    "evidence q for lag 1 at place o + 1 and -q for lag 2 at place o + 2 (above: two "
    "transitions). The keys of the two "
    "lags read all places by the same parabola, a place apart (below). Middle: what a transition "
    "with q = 1/2 then "
    "adds to the two scores. It grows with the transition's age, but for both alike, which "
    "softmax does not see; the "
    "gap is the evidence, counted once at every age. Right: for five lags waves are added to the "
    "parabola. On the "
    "differences of two lags (grey) the sum is 1 at x = 0 and 0 elsewhere, up to a constant. All "
    "of it is the closed "
    "form; nothing is random."
)

TRANSITIONS = (style.BLACK, style.PURPLE, style.SKY)

WITHIN = "0.93"
"""The grey behind differences that two lags have."""


def draw(data: Cancellation) -> Figure:
    """Draw the head with its two reads, a transition's contribution by age, and the sum
    of parabola and waves.
    """
    with style.paper_figure(style.PAGE, 2.6) as figure:
        panels = figure.subplot_mosaic([["held", "scores", "sums"], ["read", "scores", "sums"]])
        _draw_head(panels["held"], panels["read"], data)
        _draw_scores(panels["scores"], data)
        _draw_sums(panels["sums"], data)
        for ax in panels.values():
            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _draw_head(held: Axes, read: Axes, data: Cancellation) -> None:
    places = range(1, len(data.reads[0]) + 1)
    for offset, row, colour in zip(
        data.config.offsets, data.stored.tolist(), TRANSITIONS, strict=False
    ):
        where = [n for n, q in zip(places, row, strict=True) if q]
        q = [row[n - 1] for n in where]
        held.vlines(where, 0, q, color=colour, lw=1.5)
        held.plot(where, q, ".", color=colour)
        held.annotate(
            f"$o = {offset}$",
            (where[-1] + 0.5, 0),
            (0, 4),
            textcoords="offset points",
            color=colour,
        )
    held.axhline(0, color=style.BLACK, lw=0.6)
    held.set(title="2 lags: values of the head", ylabel="evidence", ylim=(-1.25, 1.25))
    for lag, row in enumerate(data.reads, start=1):
        read.plot(places, row, ".-", lw=0.8, color=style.lag_colour(lag), label=f"key of lag {lag}")
    read.set(xlabel="place $n$, tokens back", ylabel="read by")
    held.set_xlim(0.5, len(places) + 0.5)
    read.set_xlim(held.get_xlim())
    held.tick_params(labelbottom=False)
    read.legend(loc="lower left")


def _draw_scores(ax: Axes, data: Cancellation) -> None:
    for lag, row in enumerate(data.added, start=1):
        ax.plot(row, ".-", lw=0.8, color=style.lag_colour(lag), label=f"score of lag {lag}")
    arrow = {"arrowstyle": "<->", "lw": 0.8, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 6}
    for o in data.config.offsets:
        ax.annotate("", (o, data.added[0][o]), (o, data.added[1][o]), arrowprops=arrow)
        ax.annotate("1", (o, data.added[1][o]), (2, -7), textcoords="offset points")
    ax.set(
        title="contribution of a transition",
        xlabel="offset $o$, its age",
        ylabel="added to the score",
    )
    ax.legend(loc="upper left")


def _draw_sums(ax: Axes, data: Cancellation) -> None:
    x, count = data.differences, data.config.count
    total = data.parabola + data.waves
    ax.axvspan(0.5 - count, count - 0.5, color=WITHIN, lw=0, zorder=0)
    ax.plot(x, data.parabola, ".-", lw=0.8, color=style.BLUE, label="parabola")
    ax.plot(x, data.waves, ".-", lw=0.8, color=style.GREEN, label="waves")
    ax.plot(x, total, ".-", lw=1.4, color=style.BLACK, label="sum")
    low, high = total.min().item(), total.max().item()
    ax.set(title=f"{count} lags: parabola and waves", xlabel="$x$, a difference of two lags")
    ax.set_ylim(low - 0.1, high + 0.35 * (high - low))
    ax.legend(loc="upper center", ncols=3, columnspacing=0.8, handlelength=1.2)
