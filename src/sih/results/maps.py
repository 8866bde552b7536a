r"""An attention map as a picture, the same in every figure: query down, key across, darker is more.

Colours are relative to the query's largest attention, $a_{ij} / \max_j a_{ij}$: a head that shares its attention among
forty keys is as legible as one that has a single key.
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
"""White to dark, ordered by lightness: it survives print and any eye."""


def draw_map(ax: Axes, attention: Float[Tensor, "query key"], note: str = "") -> Any:
    """Draw one map, with positions from 1 as in the paper, and a note where no key is, above the diagonal."""
    size = len(attention)
    low, high = edges = (0.5, size + 0.5)
    attention = attention.detach().double()
    relative = attention / attention.amax(dim=-1, keepdim=True)
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
    """Choose the step between ticks: three to five of them, at round numbers."""
    return next((step for step in (2, 4, 5, 8, 16, 32) if size / step < 5), 64)


def draw_scale(figure: Figure, image: Any, axes: Sequence[Axes]) -> None:
    """Draw the one colour bar of a figure."""
    bar = figure.colorbar(image, ax=list(axes), shrink=0.8, aspect=30, pad=0.015, ticks=[0, 0.5, 1])
    bar.ax.tick_params(length=1.5, width=0.4, labelsize=6)
    bar.outline.set_linewidth(0.4)
    bar.set_label("attention / the query's largest", fontsize=6)
