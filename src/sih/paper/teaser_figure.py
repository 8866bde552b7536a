"""The task and the circuit at a glance: sequences with arrows from parent to child, and
one map per layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from sih.paper.teaser import Teaser
from sih.results import style
from sih.results.maps import draw_map, draw_scale
from sih.results.tables import braces

CAPTION = (
    "Top: interleaved Markov chains, a sequence of each lag; arrows lead from a token's parent to "
    "it, shades tell the interleaved chains apart, tokens without an arrow come from the "
    "stationary distribution. Middle: the task, to predict the next token of a sequence whose lag "
    "is not "
    "given; the numbers are the attention of a trained model's third layer to the candidates. "
    "Bottom: the model's attention on that sequence, a layer a map (query down, key across; "
    "darker is more, relative to the query's largest). Titles are the paper's words. The model is "
    "a standard transformer with heads [1,1,1], trained by preset auto at length 32: "
    "trained as in the paper, at this length, a model with lags 1 and 2 copies. Its last position, "
    "which is never trained, is not drawn."
)

_TITLES = (
    "layer 1: transition probabilities\nof every lag",
    "layer 2: aggregates them\nover the past",
    "layer 3: the selective induction head\npicks the most likely lag",
)


def draw(data: Teaser) -> Figure:
    """Draw sequences of every lag on top, one with an unknown lag below, and the
    attention on it at the bottom.
    """
    lags = data.lags
    with style.paper_style():
        above, below = (0.42 + 0.09 * max(lags)) * (len(lags) + 1), 2.8
        figure = Figure(figsize=(style.PAGE, above + below))
        (top,), (bottom,) = figure.subfigures(2, 1, squeeze=False, height_ratios=(above, below))
        rows = top.subplots(len(lags) + 1, 1)
        for ax, k, tokens in zip(rows, lags, data.examples, strict=False):
            _draw_tokens(ax, data, tokens.tolist(), k)
            for i in range(lags[-1], len(tokens)):
                _arrow(ax, i - k, i, style.lag_colour(k), "-")
            _label(ax, f"data:\nlag {k}")
        _draw_question(rows[-1], data)
        _label(rows[-1], f"task: lag\nin {braces(lags)}")
        axes = bottom.subplots(1, len(data.maps))
        bottom.suptitle(_model_in_words(data), fontsize=7)
        for ax, attention, title, heads in zip(axes, data.maps, _TITLES, data.heads, strict=True):
            image = draw_map(ax, attention, f"head 1 of {heads}" if heads > 1 else "")
            ax.set_title(title, fontsize=7)
            ax.set_xlabel("key", fontsize=6, labelpad=1)
        axes[0].set_ylabel("query", fontsize=6, labelpad=1)
        draw_scale(bottom, image, axes.tolist())
    return figure


def _model_in_words(data: Teaser) -> str:
    training = "as the paper trains" if data.as_in_the_paper else "by preset auto"
    heads, length = ",".join(map(str, data.heads)), len(data.tokens)
    return f"attention of a transformer [{heads}], trained {training} at length {length}"


def _draw_question(ax: Axes, data: Teaser) -> None:
    """Draw the sequence without its arrows, and the possible parents of the next token."""
    shown = data.config.shown
    _draw_tokens(ax, data, data.tokens[:shown].tolist(), None)
    ax.text(shown, 0, "?", ha="center", va="center", fontsize=10, fontweight="bold")
    for k in data.lags:
        _arrow(ax, shown - k, shown, style.lag_colour(k), (0, (2, 1)))
    each, true = zip(data.lags, data.weights.tolist(), strict=True), data.config.true_lag
    weights = [f"lag {k}: {weight:.2f}{' (true)' * (k == true)}" for k, weight in each]
    ax.text(
        shown + 0.6, 0.1, "\n".join(weights), ha="left", va="center", fontsize=7, linespacing=1.3
    )


def _draw_tokens(ax: Axes, data: Teaser, tokens: Sequence[int], lag: int | None) -> None:
    for i, state in enumerate(tokens):
        chain = 0.1 if lag is None or i < data.lags[-1] else 0.15 + 0.55 * (i % lag) / lag
        colour = style.BLACK if lag is None or i < data.lags[-1] else style.lag_colour(lag)
        ax.add_patch(Circle((i, 0), 0.34, facecolor=colour, alpha=chain, lw=0))
        ax.add_patch(Circle((i, 0), 0.34, fill=False, edgecolor=style.BLACK, lw=0.5))
        ax.text(i, 0, chr(ord("a") + state), ha="center", va="center_baseline", fontsize=7)
    ax.set(
        xlim=(-2.6, data.config.shown + 3.6),
        ylim=(-0.5, 0.55 + 0.27 * max(data.lags)),
        aspect="equal",
    )
    ax.axis("off")


def _arrow(ax: Axes, start: int, end: int, colour: str, dashes: Any) -> None:
    bend = f"arc3,rad={-0.75 if end - start == 1 else -0.5}"
    look: dict[str, Any] = {
        "color": colour,
        "linestyle": dashes,
        "lw": 0.8,
        "arrowstyle": "-|>",
        "mutation_scale": 5,
    }
    ax.add_patch(
        FancyArrowPatch(
            (start, 0.34), (end, 0.34), connectionstyle=bend, shrinkA=0.5, shrinkB=0.5, **look
        )
    )


def _label(ax: Axes, text: str) -> None:
    ax.text(-0.7, 0, text, ha="right", va="center", fontsize=8, linespacing=1.3)
