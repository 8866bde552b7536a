"""Attention maps as the paper prints them: one row per model, one column per layer."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.attention_maps import CONSTRUCTED, AttentionMaps, ModelMaps
from sih.results import style
from sih.results.maps import draw_layer_scale, draw_map
from sih.results.tables import Rows, braces

CAPTION = (
    "Attention of each layer on one sequence of the task, positions 1 to 48 (query down, key "
    "across). Rows: models trained as in the paper, which ship at length 32 but for {1,2,3}; the "
    "construction; models trained by preset auto, at length 128. No model trained as in the "
    "paper with one head a layer at length 128 ships. A model of length 32 reads the first 32 "
    "tokens, and its last position, which is never trained, is not drawn. Where a layer has "
    "several heads, the map is of one of them: of the construction its first, of a model the "
    "nearest to that. Each layer has its own scale, from 0 to the mean over the later half "
    "of the queries of the construction's largest attention; larger ones are as dark. TV is the "
    "total variation to the construction's map above or below, the mean over all queries (0 "
    "equal, 1 disjoint); 'lag k' the third layer's attention on the token that the true lag copies."
)
SIDE, LABEL = 1.35, 1.15
"""Inches of a map, and of the label beside a row."""


def draw(data: AttentionMaps) -> Figure:
    """Draw one row of maps per model."""
    columns = len(data.construction.maps)
    width, height = SIDE * columns + LABEL, SIDE * len(data.rows) + 0.85
    with style.paper_figure(width, height) as figure:
        axes = figure.subplots(len(data.rows), columns, squeeze=False)
        for layer, column in enumerate(axes.T):
            top = darkest(data, layer)
            for row, ax in zip(data.rows, column, strict=True):
                image = draw_map(ax, row.maps[layer], note(data, row, layer), top)
            column[0].set_title(heading(data, layer), fontsize=7, pad=3)
            column[-1].set_xlabel("key", fontsize=6, labelpad=1)
            draw_layer_scale(figure, image, column.tolist(), top)
        for row, line in zip(data.rows, axes, strict=True):
            line[0].set_ylabel(label(row), fontsize=6)
        figure.suptitle(title(data), fontsize=8)
    return figure


def darkest(data: AttentionMaps, layer: int) -> float:
    """Return the attention that gets the darkest colour in a layer: the construction's
    typical maximum.
    """
    attention = data.construction.maps[layer]
    return attention[len(attention) // 2 :].amax(dim=1).mean().item()


def heading(data: AttentionMaps, layer: int) -> str:
    """Return a column's title; the last one includes the true lag."""
    last = layer == len(data.construction.maps) - 1
    return f"layer {layer + 1}{f', true lag {data.config.true_lag}' if last else ''}"


def title(data: AttentionMaps) -> str:
    """Return the title: the lags, and the missing models."""
    words = f"lags {braces(data.lags)}, true lag {data.config.true_lag}"
    if not data.missing:
        return words
    return f"{words}\n(without {'; '.join(data.missing)})"


def note(data: AttentionMaps, row: ModelMaps, layer: int) -> str:
    """Return the head shown, the distance of its map, and the last layer's choice."""
    lines = []
    if row.heads[layer] > 1:
        lines.append(f"head {row.numbers[layer]} of {row.heads[layer]}")
    if row.name != CONSTRUCTED:
        lines.append(f"TV {row.variation[layer]:.2f}")
    if layer == len(row.maps) - 1:
        lines.append(f"lag {data.config.true_lag}: {row.selected:.2f}")
    return "\n".join(lines)


def label(row: ModelMaps) -> str:
    """Return a row's label: the model's kind, training, heads and length."""
    heads = f"[{','.join(map(str, row.heads))}]"
    if row.name == CONSTRUCTED:
        return f"construction\n{heads}"
    training = "as the paper trains" if row.as_in_the_paper else "preset auto"
    return f"{row.kind}\n{training}\n{heads}, length {row.length}"


def table(data: AttentionMaps) -> Rows:
    """Return each layer's total variation from the construction, and the share on the
    true lag.
    """
    layers = [f"TV {layer + 1}" for layer in range(len(data.construction.maps))]
    rows = [["model", "head of layer 2", *layers, f"on lag {data.config.true_lag}"]]
    for row in data.rows:
        far = [f"{value:.3f}" for value in row.variation]
        shown = f"{row.numbers[1]} of {row.heads[1]}"
        rows.append([row.name, shown, *far, f"{row.selected:.3f}"])
    return rows
