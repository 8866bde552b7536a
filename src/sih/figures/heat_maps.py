r"""An attention map as a picture, the same in every figure: query down, key across, darker is more.

Colours are relative to the query's largest attention, $a_{ij} / \max_j a_{ij}$: a head that shares its attention among
forty keys is as legible as one that has a single key.
"""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.attention_maps import AttentionMaps, Map, MapRow
from sih.results import style
from sih.results.experiment import braces

COLOURS = "Blues"
"""White to dark, ordered by lightness: it survives print and any eye."""


def draw_map(ax: Axes, attention: Map, note: str = "") -> Any:
    """Draw one map, with positions from 1 as in the paper, and a note where no key is, above the diagonal."""
    size = len(attention)
    low, high = edges = (0.5, size + 0.5)
    relative = [[value / max(row) for value in row] for row in attention]
    image = ax.imshow(
        relative,
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


def draw_attention_maps(data: AttentionMaps) -> Figure:
    """Draw a row of maps for each model, the construction's last."""
    places = [
        (layer, head)
        for layer, heads in enumerate(data.rows[-1].maps)
        for head in range(len(heads))
    ]
    side = min(1.6, (style.PAGE - 0.95) / len(places))
    with style.paper_figure(side * len(places) + 0.95, side * len(data.rows) + 0.6) as figure:
        axes = figure.subplots(len(data.rows), len(places), squeeze=False, sharex=True, sharey=True)
        image = None
        for row, line in zip(data.rows, axes, strict=True):
            for (layer, head), ax in zip(places, line, strict=True):
                attention = row.maps[layer][head]
                if attention is None:
                    ax.set_visible(False)
                    continue
                image = draw_map(ax, attention, _note(data, row, layer, head))
            line[0].set_ylabel(_label(row), fontsize=7)
        for (layer, head), ax in zip(places, axes[0], strict=True):
            many = len(data.rows[-1].maps[layer]) > 1
            ax.set_title(
                f"layer {layer + 1}" + (f", head {head + 1}" if many else ""), fontsize=7, pad=3
            )
        for ax in axes[-1]:
            ax.set_xlabel("key", fontsize=6, labelpad=1)
        draw_scale(figure, image, axes.flatten().tolist())
        title = f"lags {braces(data.lags)}, true lag {data.config.true_lag}"
        if data.missing:
            title += f"   (without {'; '.join(data.missing)})"
        figure.suptitle(title, fontsize=8)
    return figure


def _note(data: AttentionMaps, row: MapRow, layer: int, head: int) -> str:
    """Say how near a trained map is to the construction's, and what the last layer selects."""
    far = row.variation[layer][head]
    lines = [] if row is data.rows[-1] or far is None else [f"TV {far:.2f}".replace("0.", ".")]
    if layer == len(row.maps) - 1:
        lines.append(f"lag {data.config.true_lag}: {row.selected:.2f}".replace("0.", "."))
    return "\n".join(lines)


def _label(row: MapRow) -> str:
    """Write a model's name in short lines, which fit beside a map: its kind, then what tells it from others."""
    name = row.name.replace(f"{row.kind}-", "", 1).replace("-length", "\nlength ")
    return f"{row.kind}\n{name}" if row.kind else row.name
