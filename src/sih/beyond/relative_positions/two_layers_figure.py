"""Least error of two layers against second-layer heads, and against the length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from sih.beyond.relative_positions.two_layers import Bound, TwoLayers
from sih.results import style
from sih.results.tables import Rows, braces

CAPTION = (
    "Two attention-only layers with relative positions cannot be Bayes, with any number of heads "
    "(docs/proofs/two_layers.md). Left and middle: the least error of the weight of a lag on the "
    "sequences of the proof, against the number of second-layer heads. Each sequence has 8 to 128 "
    "slots. A slot holds one of two words, each of which speaks for a lag; the log-odds of the two "
    "lags differ by 1 nat (left) or 4 nats (middle) from one word to the other. Right: the least "
    "error of the probability of a token on such sequences of a task with lags {1,2,3}, against "
    "their length, with 1 to 8 second-layer heads. The matrix has 5 states and uniform rows, and "
    "the reach is the least with which heads [1,1,1] compute the paper's estimator. Any weights, "
    "and any number of first-layer heads, err by at least as much on one of the sequences."
)


LOWEST = 1e-5
"""Smallest error shown."""


def draw(data: TwoLayers) -> Figure:
    """Draw a panel for each amount of evidence, and one for the sequences of a task."""
    evidence = data.config.evidence
    with style.paper_figure(style.PAGE, 2.5) as figure:
        panels = figure.subplots(1, len(evidence) + 1, sharey=True, squeeze=False)[0]
        *by_heads, by_length = panels
        for ax, nats in zip(by_heads, evidence, strict=True):
            _draw_heads(ax, data, nats)
        _draw_lengths(by_length, data)
        panels[0].set_ylabel("least error")
        for ax in panels:
            ax.set_yscale("log")
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        panels[0].set_ylim(LOWEST, 1)
    return figure


def _draw_heads(ax: Axes, data: TwoLayers, nats: float) -> None:
    """Draw the least error of a weight against second-layer heads, a line for each number of slots."""
    config = data.config
    for slots, shade in zip(config.slots, _shades(len(config.slots)), strict=True):
        bounds = [one for one in data.weights if (one.slots, one.evidence) == (slots, nats)]
        label = f"{slots} slots" if slots == config.slots[-1] else str(slots)
        _line(ax, [bound.heads for bound in bounds], bounds, shade, label)
    ax.set(xlabel="second-layer heads", title=f"weight of a lag, {nats:g} nat a slot")
    ax.set_xticks(config.heads)
    ax.set_xlim(config.heads[0] - 0.4, config.heads[-1] + 2.2)


def _draw_lengths(ax: Axes, data: TwoLayers) -> None:
    """Draw the least error of a probability against the length, a line for each number of heads."""
    lengths = data.config.lengths
    shown = [heads for heads in (1, 2, 3, 4, 6, 8) if heads in data.config.heads]
    for heads, shade in zip(shown, _shades(len(shown)), strict=True):
        chosen = [x for x in data.probabilities if x.heads == heads]
        label = f"{heads} heads" if heads == shown[-1] else "1 head" if heads == 1 else str(heads)
        _line(ax, [x.length for x in chosen], chosen, shade, label)
    ax.set_xscale("log", base=2)
    ax.set_xticks(lengths, [str(length) for length in lengths])
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(lengths[0] * 0.85, lengths[-1] * 2.6)
    ax.set(xlabel="length $T$", title=f"probability of a token, {braces(data.config.lags)}")


def _line(ax: Axes, x: Sequence[int], bounds: Sequence[Bound], colour: Any, label: str) -> None:
    """Draw one curve with its label at the last point that is shown."""
    y = [bound.lower for bound in bounds]
    ax.plot(x, y, "o-", ms=2.5, lw=1, color=colour)
    shown = [place for place in zip(x, y, strict=True) if place[1] >= LOWEST]
    if shown:
        ax.annotate(
            label,
            shown[-1],
            (4, 1),
            textcoords="offset points",
            color=colour,
            fontsize=6.5,
            va="center",
        )


def _shades(count: int) -> list[Any]:
    """Return colours from light to dark."""
    return [colormaps["viridis_r"](0.25 + 0.7 * n / max(1, count - 1)) for n in range(count)]


def table(data: TwoLayers) -> Rows:
    """Return one row per amount of evidence and slots, or length: the least error by
    heads.
    """
    heads = data.config.heads
    rows = [["", "slots", *(f"{n} head{'s' * (n > 1)}" for n in heads)]]
    cases: dict[tuple[str, int], dict[int, float]] = {}
    for bound in data.weights:
        key = (f"a weight, {bound.evidence:g} nat a slot", bound.slots)
        cases.setdefault(key, {})[bound.heads] = bound.lower
    for bound in data.probabilities:
        key = (f"a probability, T = {bound.length}", bound.slots)
        cases.setdefault(key, {})[bound.heads] = bound.lower
    for (what, slots), errors in cases.items():
        cells = [f"{errors[n]:.1e}" if n in errors else "" for n in heads]
        rows.append([what, str(slots), *cells])
    return rows
