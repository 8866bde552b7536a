"""Attention maps: a row for each model, a column for each head of the construction."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.attention_maps import AttentionMaps, ModelMaps
from sih.results import style
from sih.results.maps import draw_map, draw_scale
from sih.results.tables import Rows, braces

CAPTION = (
    "Attention of every head on one sequence of the task, its first positions (query down, key across; darker is more, "
    "relative to the query's largest). Rows: trained standard and disentangled transformers, by the name of the model "
    "(paper-...: unaided Adam, at the length in its name; the others by preset auto or harmonic, at length 128), "
    "and the construction with as many second-layer heads. Heads of a layer come in the order of the construction's "
    "that they match best. TV is the total variation to the construction's map, the mean over the queries of the whole "
    "sequence (0 equal, 1 disjoint); 'lag k' the share of the third layer's attention on the token that the true lag "
    "copies."
)
Place = tuple[int, int]
"""A layer and a head of the construction, from 0."""


def draw(data: AttentionMaps) -> Figure:
    """Draw a row of maps for each model, the construction's last."""
    places = places_of(data)
    side = min(1.6, (style.PAGE - 0.95) / len(places))
    with style.paper_figure(side * len(places) + 0.95, side * len(data.rows) + 0.6) as figure:
        axes = figure.subplots(len(data.rows), len(places), squeeze=False, sharex=True, sharey=True)
        image = None
        for row, line in zip(data.rows, axes, strict=True):
            for (layer, head), ax in zip(places, line, strict=True):
                if row.numbers[layer][head] == 0:
                    ax.set_visible(False)
                    continue
                image = draw_map(ax, row.maps[layer][head], note(data, row, (layer, head)))
            line[0].set_ylabel(label(row), fontsize=7)
        for (layer, head), ax in zip(places, axes[0], strict=True):
            several = (layer, 1) in places
            name = f"layer {layer + 1}, head {head + 1}" if several else f"layer {layer + 1}"
            ax.set_title(name, fontsize=7, pad=3)
        for ax in axes[-1]:
            ax.set_xlabel("key", fontsize=6, labelpad=1)
        draw_scale(figure, image, axes.flatten().tolist())
        figure.suptitle(title(data), fontsize=8)
    return figure


def places_of(data: AttentionMaps) -> list[Place]:
    """Return the place of each head of the construction."""
    layers = enumerate(data.rows[-1].numbers)
    return [(layer, head) for layer, heads in layers for head in range(len(heads))]


def title(data: AttentionMaps) -> str:
    """Return the lags, the true one, and which models are missing."""
    words = f"lags {braces(data.lags)}, true lag {data.config.true_lag}"
    if not data.missing:
        return words
    return f"{words}   (without {'; '.join(data.missing)})"


def note(data: AttentionMaps, row: ModelMaps, place: Place) -> str:
    """Return how near a map is to the construction's, and the last layer's choice."""
    layer, head = place
    lines = []
    if row is not data.rows[-1]:
        lines.append(f"TV {row.variation[layer][head]:.2f}".replace("0.", "."))
    if layer == len(row.maps) - 1:
        lines.append(f"lag {data.config.true_lag}: {row.selected:.2f}".replace("0.", "."))
    return "\n".join(lines)


def label(row: ModelMaps) -> str:
    """Return a model's kind, and below it what tells it from others of its kind."""
    name = row.name.replace(f"{row.kind}-", "", 1).replace("-length", "\nlength ")
    return f"{row.kind}\n{name}" if row.kind else row.name


def table(data: AttentionMaps) -> Rows:
    """Return each head's total variation to the construction, and the share on the true lag."""
    places = places_of(data)
    heads = [f"TV {layer + 1}.{head + 1}" for layer, head in places]
    rows = [["model", *heads, f"on lag {data.config.true_lag}"]]
    for row in data.rows:
        far = [row.variation[layer][head] for layer, head in places]
        cells = ["" if value.isnan() else f"{value:.3f}" for value in far]
        rows.append([row.name, *cells, f"{row.selected:.3f}"])
    return rows
