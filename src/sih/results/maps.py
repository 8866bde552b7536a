r"""An attention map as a picture, the same in every figure: query down, key across,
darker is more.

Colours are relative to the query's largest attention, $a_{ij} / \max_j a_{ij}$: a head
that spreads its attention over forty keys is as legible as one with a single key. Some
figures use one maximum per layer; their captions say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sih.results import style

COLOURS = "Blues"
"""Colours from white to dark, ordered by lightness: legible in print and to
colour-blind readers."""


def draw_map(
    ax: Axes, attention: Float[Tensor, "query key"], note: str = "", top: float | None = None
) -> Any:
    """Draw one map, with positions from 1 as in the paper, and a note above the
    diagonal, where there are no keys.

    Attention of `top` or more is darkest; without `top`, each query's largest is.
    """
    size = len(attention)
    low, high = edges = (0.5, size + 0.5)
    attention = attention.detach().double()
    relative = attention / (attention.amax(dim=-1, keepdim=True) if top is None else top)
    image = ax.imshow(
        relative.numpy(),
        cmap=COLOURS,
        vmin=0,
        vmax=1,
        extent=(low, high, high, low),
        interpolation="nearest",
    )
    ax.plot(edges, edges, color=style.BLACK, lw=0.3, alpha=0.6)
    ticks = [1, *range(step_of(size), size + 1, step_of(size))]
    ax.set(xticks=ticks, yticks=ticks)
    ax.tick_params(length=1.5, width=0.4, pad=1.5, labelsize=6)
    ax.spines[:].set(visible=True, linewidth=0.4)
    ax.text(
        0.97, 0.96, note, transform=ax.transAxes, ha="right", va="top", fontsize=6, linespacing=1.3
    )
    return image


def step_of(size: int) -> int:
    """Return the step between ticks: three to five of them, at round numbers."""
    return next((step for step in (2, 4, 5, 8, 16, 32) if size / step < 5), 64)


def draw_scale(figure: Figure, image: Any, axes: Sequence[Axes]) -> None:
    """Draw the one colour bar of a figure."""
    bar = figure.colorbar(image, ax=list(axes), shrink=0.8, aspect=30, pad=0.015, ticks=[0, 0.5, 1])
    bar.ax.tick_params(length=1.5, width=0.4, labelsize=6)
    bar.outline.set_linewidth(0.4)
    bar.set_label("attention / the query's largest", fontsize=6)


def draw_layer_scale(figure: Figure, image: Any, axes: Sequence[Axes], top: float) -> None:
    """Draw the colour bar of maps with one common maximum, below them."""
    bar = figure.colorbar(
        image, ax=list(axes), location="bottom", shrink=0.8, aspect=20, pad=0.01, extend="max"
    )
    bar.set_ticks([0, 0.5, 1], labels=["0", f"{top / 2:.2f}", f"{top:.2f}"])
    bar.ax.tick_params(length=1.5, width=0.4, labelsize=6)
    bar.outline.set_linewidth(0.4)
    bar.set_label("attention", fontsize=6)
