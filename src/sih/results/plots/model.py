"""A model's weights as maps: attention of each head by tokens alone, and by positions
alone.
"""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sih.models.base import Model
from sih.results import style
from sih.results.maps import COLOURS, draw_map, draw_scale
from sih.results.plots.trace import LEGIBLE

HEADS, NUMBERED = 5, 6
"""Heads per row, and the largest number of states with printed numbers."""


def draw_model(data: Model) -> Figure:
    """Draw the softmax of scores between two tokens, and below it between two
    positions, one column per head.

    If the model reads offsets, the lower map is by offset, with one row per token. The
    maps show the weights applied to the embedding. Heads of later layers read further
    values, which are not shown.
    """
    found = {name: maps for name, maps in data.direct_attention().items() if maps}
    if not found:
        raise ValueError(
            f"a {type(data).__name__} without scores of tokens and positions has no figure"
        )
    columns, names = min(HEADS, len(found)), list(found)
    blocks = -(-len(names) // columns)
    side = min(1.6, (style.PAGE - 0.9) / columns)
    image: Any = None
    with style.paper_figure(side * columns + 0.9, 2 * blocks * (side + 0.15) + 0.45) as figure:
        axes = figure.subplots(2 * blocks, columns, squeeze=False)
        for place in range(blocks * columns):
            block, column = divmod(place, columns)
            pair = axes[2 * block : 2 * block + 2, column]
            if place >= len(names):
                pair[0].set_visible(False)
                pair[1].set_visible(False)
                continue
            maps = found[names[place]]
            image = _draw_tokens(pair[0], maps["token"].tolist())
            image, labels = _draw_places(pair[1], maps, image)
            for ax, (query, key) in zip(
                pair, (("query's token", "key's token"), labels), strict=True
            ):
                ax.set_ylabel(query if column == 0 else "", fontsize=6, labelpad=1)
                ax.set_xlabel(key, fontsize=6, labelpad=1)
            pair[0].set_title(f"head {names[place]}", fontsize=7, pad=3)
        draw_scale(figure, image, axes[1::2].flatten().tolist())
        figure.suptitle(
            "attention of each head by tokens alone, and by positions alone", fontsize=7
        )
    return figure


def _draw_places(ax: Axes, maps: Mapping[str, Tensor], image: Any) -> tuple[Any, tuple[str, str]]:
    """Draw attention by position or by offset, as the head reads it; return the image
    with its two labels.
    """
    if "position" in maps:
        return draw_map(ax, maps["position"][:LEGIBLE, :LEGIBLE]), (
            "query's position",
            "key's position",
        )
    if "offset" not in maps:
        ax.set_visible(False)
        return image, ("", "")
    attention = maps["offset"][:, :LEGIBLE]
    relative = attention / attention.amax(dim=1, keepdim=True)
    drawn = ax.imshow(
        relative.tolist(), cmap=COLOURS, vmin=0, vmax=1, interpolation="nearest", aspect="auto"
    )
    ax.tick_params(length=1.5, width=0.4, pad=1.5, labelsize=6)
    ax.spines[:].set(visible=True, linewidth=0.4)
    return drawn, ("query's token", "offset")


def _draw_tokens(ax: Axes, rows: list[list[float]]) -> Any:
    """Draw attention between states, with numbers where they fit: a head that ignores
    tokens is pale.
    """
    image = ax.imshow(rows, cmap=COLOURS, vmin=0, vmax=1, interpolation="nearest")
    if len(rows) <= NUMBERED:
        ax.set(xticks=range(len(rows)), yticks=range(len(rows)))
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                colour = "white" if value > 0.6 else "black"
                ax.text(
                    x,
                    y,
                    f"{value:.2f}",
                    ha="center",
                    va="center",
                    fontsize=5,
                    color=colour,
                )
    ax.tick_params(length=1.5, width=0.4, pad=1.5, labelsize=6)
    ax.spines[:].set(visible=True, linewidth=0.4)
    return image
