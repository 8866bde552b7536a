"""Methods of circuit discovery on known circuits: one row per circuit, one point per
method.
"""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.beyond.discovery.discovery import Judgement
from sih.beyond.discovery.ground_truth import Discovery
from sih.results.style import BLACK, BLUE, GREEN, ORANGE, PAGE, RED, paper_figure

MARKS = {
    "exact": (BLACK, "|"),
    "eap": (RED, "o"),
    "eap-ig": (BLUE, "s"),
    "atp*": (GREEN, "^"),
    "attribution": (ORANGE, "x"),
}


def draw_discovery(data: Discovery) -> Figure:
    """Draw area under the ROC curve, and precision at the true number of edges, with
    those of guessing.
    """
    names = list(dict.fromkeys(found.circuit for found in data.measured))
    with paper_figure(PAGE, 0.9 + 0.28 * len(names)) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for row, name in enumerate(names):
            judged = {one.method: one.judged for one in data.measured if one.circuit == name}
            _draw_circuit(axes, row, judged)
        axes[0].axvline(0.5, color="0.6", lw=0.8, zorder=1)
        axes[0].set_yticks(range(len(names)), names)
        axes[0].set_ylim(len(names) - 0.5, -0.5)
        axes[0].set_xlabel("area under the ROC curve (grey: guessing)")
        axes[1].set_xlabel("precision at the true number of edges")
        for axis in axes:
            axis.set_xlim(-0.04, 1.04)
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(MARKS)
        )
    return figure


def _draw_circuit(axes: Sequence[Axes], row: int, judged: Mapping[str, Judgement]) -> None:
    """Draw the row of one circuit: a point for each method, and the precision of guessing."""
    for place, (method, (colour, mark)) in enumerate(MARKS.items()):
        if method not in judged:
            continue
        size = 36 if mark == "|" else 14
        y = row + 0.11 * (place - 2)
        label = method if row == 0 else None
        values = judged[method].area, judged[method].precision
        for axis, value in zip(axes, values, strict=True):
            axis.scatter(value, y, color=colour, marker=mark, s=size, label=label, zorder=3)
    guessed = next(iter(judged.values())).guessed
    axes[1].plot([guessed, guessed], [row - 0.4, row + 0.4], color="0.6", lw=0.8, zorder=1)
    for axis in axes:
        axis.axhline(row + 0.5, color="0.9", lw=0.5, zorder=0)
