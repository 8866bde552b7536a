"""A task at a glance: its transition matrix and stationary distribution, and the
parents under each hypothesis.
"""

from typing import Any

import torch
from matplotlib.figure import Figure

from sih.results import style
from sih.results.maps import COLOURS
from sih.task import MatrixTask, has_parent
from sih.task.parents import ShownTask

NUMBERED, ROWS, TOKENS = 10, 6, 9
"""Largest number of states with printed probabilities, of hypotheses drawn, and of
tokens beyond the first with a parent."""


def draw_task(data: ShownTask) -> Figure:
    """Draw P with the stationary distribution below it, and arrows from parent to
    child, one row per hypothesis.
    """
    task: Any = data
    matrix, rows = isinstance(data, MatrixTask), min(ROWS, len(task.hypotheses))
    width, height = (
        style.PAGE * (1 if matrix else 0.6),
        max(2.6 if matrix else 0.0, 0.7 * rows + 0.3),
    )
    with style.paper_figure(width, height) as figure:
        parts = figure.subfigures(
            1, 1 + matrix, squeeze=False, width_ratios=(1, 1.5)[-1 - matrix :]
        )[0]
        if matrix:
            states = task.num_states
            ratios = (states, 1) if states <= NUMBERED else (NUMBERED, 1)
            _draw_matrix(parts[0].subplots(2, 1, height_ratios=ratios), task)
        _draw_parents(parts[-1].subplots(rows, 1, squeeze=False)[:, 0], task)
        more = len(task.hypotheses) - rows
        note = f" ({more} hypotheses more)" if more else ""
        parts[-1].supxlabel(f"positions of tokens, and what each follows{note}", fontsize=7)
    return figure


def _draw_matrix(axes: Any, task: Any) -> None:
    matrix, law = axes
    for ax, table in ((matrix, task.P.tolist()), (law, [task.stationary.tolist()])):
        top, few = max(map(max, table)), len(table[0]) <= NUMBERED
        ax.imshow(
            table,
            cmap=COLOURS,
            vmin=0,
            vmax=top,
            aspect="equal" if few else "auto",
            interpolation="nearest",
        )
        for y, row in enumerate(table if few else ()):
            for x, value in enumerate(row):
                text, colour = (
                    f"{value:.2f}",
                    "white" if value > 0.6 * top else "black",
                )
                ax.text(
                    x,
                    y,
                    text,
                    ha="center",
                    va="center",
                    fontsize=6 if len(row) <= 6 else 5,
                    color=colour,
                )
        ax.tick_params(length=1.5, width=0.4, pad=1.5, labelsize=6)
        ax.spines[:].set(visible=True, linewidth=0.4)
        if few:
            ax.set_xticks(range(len(table[0])))
    if task.num_states <= NUMBERED:
        matrix.set_yticks(range(task.num_states))
    matrix.set(title="$P$, from row to column", anchor="S")
    law.set(yticks=[], title=r"stationary distribution $\pi$", anchor="N")


def _draw_parents(axes: Any, task: Any) -> None:
    """Draw the first tokens of a sequence, counted from 1 as in the paper, with an arc
    to each from its parent.
    """
    parents = task.parents(task.length)
    shown = min(task.length, int(has_parent(parents).int().argmax()) + TOKENS)
    reach = int((torch.arange(shown) - parents[:, :shown]).mul(parents[:, :shown] >= 0).max())
    around = torch.linspace(torch.pi, 0, 33)
    for row, (ax, label) in enumerate(zip(axes, task.hypotheses, strict=False)):
        colour = style.LAG_COLOURS[row % len(style.LAG_COLOURS)]
        for child, parent in enumerate(parents[row, :shown].tolist()):
            ax.text(child, 0, str(child + 1), ha="center", va="center", fontsize=6)
            if parent >= 0:
                half = (child - parent) / 2
                height = (0.3 + 1.4 * half / reach) * around.sin()
                ax.plot(
                    (child + parent) / 2 + half * around.cos(), 0.3 + height, color=colour, lw=0.8
                )
                ax.plot(child, 0.31, marker="v", ms=2.5, mew=0, color=colour)
        ax.set(xlim=(-0.6, shown - 0.4), ylim=(-0.3, 1.45))
        ax.axis("off")
        chance = f"{float(task.prior[row]):.3g}"
        name = f"lag {label}" if hasattr(task, "lags") else f"hypothesis {label}"
        ax.set_title(f"{name}, probability {chance}", loc="left", fontsize=7, color=colour, pad=1)
