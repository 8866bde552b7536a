"""Printed and corrected matrices side by side, with their errors."""

from __future__ import annotations

from typing import Any

from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from sih.paper.errata import (
    HEADS,
    LAMBDA,
    SHARE,
    SIGN,
    Errata,
)
from sih.results import style
from sih.results.tables import Rows

CAPTION = (
    "Matrices of the paper as printed and as they should read, numbered as in docs/errata.md (5, "
    "6, 7 and 12 are not "
    "of matrices). Masks: blue is +λ, grey −λ. Blocks B: colours are heads (1), or +β and −β (2). "
    "4: the attention of "
    "head 1 as drawn and as it is. 10: the address at which layer 1 stores. Right: the largest "
    "total variation between the prediction of the circuit with this matrix and its closed form "
    "(4, 10: the error of the statement itself), by "
    "position, over sequences of a random matrix with 4 states."
)

_MAPS: dict[str, tuple[Any, float, float]] = {
    LAMBDA: (ListedColormap(["#E8E8E8", "white", style.BLUE]), -1, 1),
    SIGN: (ListedColormap([style.PURPLE, "white", style.ORANGE]), -1, 1),
    HEADS: (ListedColormap(["white", style.RED, style.BLUE, style.ORANGE]), 0, 3),
    SHARE: ("Blues", 0, 1),
}


def draw(data: Errata) -> Figure:
    """Draw two errata per row, each as printed, as corrected, and with the errors of
    both.
    """
    errata = sorted(data.errata, key=lambda erratum: erratum.number)
    rows = -(-len(errata) // 2)
    with style.paper_figure(style.PAGE, 0.3 + 1.35 * rows) as figure:
        grid = figure.subplots(rows, 6, width_ratios=(1, 1, 1) * 2, squeeze=False).reshape(-1, 3)
        for erratum, (left, middle, right) in zip(errata, grid, strict=False):
            _draw_matrix(left, erratum.kind, erratum.printed, "printed")
            _draw_matrix(middle, erratum.kind, erratum.corrected, "should read")
            left.set_title(f"{erratum.number}. {erratum.title}", fontsize=7, loc="left")
            positions = range(erratum.first, erratum.first + len(erratum.printed_error))
            right.plot(
                positions,
                erratum.printed_error,
                color=style.RED,
                marker="x",
                ms=2.5,
                lw=0.8,
                label="printed",
            )
            blue: dict[str, Any] = {
                "color": style.BLUE,
                "marker": ".",
                "ms": 3,
                "lw": 0.8,
                "label": "corrected",
            }
            right.plot(positions, erratum.corrected_error, **blue)
            right.set(xlim=(0, len(erratum.printed) + 1), ylim=(-0.05, 1.1))
            right.set_yticks([0, 0.5, 1], ["0", "½", "1"])
            right.set_xticks(range(0, len(erratum.printed) + 1, 5))
            right.set_xlabel("position", fontsize=6, labelpad=1)
            right.set_ylabel("error", fontsize=6, labelpad=1)
            right.tick_params(labelsize=6, pad=1)
        for unused in grid[len(errata) :].flat:
            unused.set_visible(False)
        handles, labels = grid[0, 2].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_matrix(ax: Axes, kind: str, matrix: Float[Tensor, "row column"], label: str) -> None:
    colours, low, high = _MAPS[kind]
    ax.imshow(matrix.numpy(), cmap=colours, vmin=low, vmax=high, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel(label, fontsize=6, labelpad=2)
    ax.spines[:].set_visible(True)


def table(data: Errata) -> Rows:
    """Return one row per erratum: the largest error of each form."""
    rows = [["erratum", "printed", "corrected"]]
    for erratum in sorted(data.errata, key=lambda erratum: erratum.number):
        rows.append(
            [
                str(erratum.number),
                f"{erratum.printed_error.max():.3f}",
                f"{erratum.corrected_error.max():.1e}",
            ]
        )
    return rows
