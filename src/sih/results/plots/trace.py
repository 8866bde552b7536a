"""A forward pass as maps: the attention pattern of every head on one sequence."""

from matplotlib.figure import Figure

from sih.base.errors import FieldError, check_sizes
from sih.models.sites import Trace
from sih.results import style
from sih.results.maps import draw_map, draw_scale

ACROSS, LEGIBLE = 5, 48
"""Maps per row, and positions of a map that can be distinguished in print."""


def draw_trace(data: Trace, sequence: int = 0, length: int = LEGIBLE) -> Figure:
    """Draw the attention of each head on one sequence of the batch, up to a length,
    layer by layer.
    """
    if not isinstance(sequence, int) or not -len(data.tokens) <= sequence < len(data.tokens):
        message = f"sequence is a row of the batch, 0 to {len(data.tokens) - 1}; got {sequence!r}"
        raise FieldError("sequence", message)
    check_sizes(length=length)
    length = min(length, data.tokens.shape[1])
    if not data.heads:
        raise ValueError("a pass without attention has no maps")
    names = [
        f"{layer}.{head}"
        for layer, count in enumerate(data.heads, 1)
        for head in range(1, count + 1)
    ]
    columns = min(ACROSS, len(names))
    rows = -(-len(names) // columns)
    side = min(1.6, (style.PAGE - 0.8) / columns)
    with style.paper_figure(side * columns + 0.8, (side + 0.25) * rows + 0.2) as figure:
        axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
        for name, ax in zip(names, axes.flat, strict=False):
            image = draw_map(ax, data[f"{name}/attention"][sequence, :length, :length])
            ax.set_title(f"head {name}", fontsize=7, pad=3)
        for ax in axes.flat[len(names) :]:
            ax.set_visible(False)
        for ax in axes[:, 0]:
            ax.set_ylabel(
                "query, after a start token" if data.first else "query", fontsize=6, labelpad=1
            )
        for column in range(columns):
            last = max(row for row in range(rows) if row * columns + column < len(names))
            axes[last, column].set_xlabel("key", fontsize=6, labelpad=1)
            axes[last, column].tick_params(labelbottom=True)
        draw_scale(figure, image, axes.flatten().tolist())
        if length < data.tokens.shape[1]:
            figure.suptitle(f"the first {length} of {data.tokens.shape[1]} positions", fontsize=7)
    return figure
