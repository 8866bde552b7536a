"""The style of all figures: paper width, legible in print, safe for colour-blind
readers, reproducible bytes.

It also has the shared parts of panels of curves: an axis of doubling positions, one
legend, a note on missing models.
"""

import io
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.base.files import atomic_write

PAGE = 6.75
"""Width of the text of a page, in inches."""
FORMATS = ("pdf", "svg", "png")

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""Okabe and Ito's palette."""
LAG_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, "#B7A900", "#3B3A42")
"""Okabe and Ito's hues, with yellow darker and black softer, as in the explorer. The
first three differ the most, also to colour-blind readers."""
TWELVE = (
    "#882E72", "#AE76A3", "#D1BBD7", "#1965B0", "#5289C7", "#7BAFDE",
    "#4EB265", "#90C987", "#D9C000", "#F4A736", "#E8601C", "#DC050C",
)  # fmt: skip
"""One colour for each of twelve lags in one panel: Tol's discrete rainbow, its two
palest greens and yellows darker."""
Look = tuple[str, Any, float]
"""Colour, dashes, line width."""

_RC: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "sih",
    "savefig.dpi": 200,
}


paper_style = partial(rc_context, _RC)
"""Context in which every figure is drawn and saved, with this style."""


def lag_colour(lag: int) -> str:
    """Return the colour of a lag in every figure and in the explorer, whatever the
    other lags are.
    """
    return LAG_COLOURS[(lag - 1) % len(LAG_COLOURS)]


def lag_dashes(lag: int) -> Any:
    """Return the dashes of a lag's line: from 9 on, lags repeat the colours of 1 to 8."""
    return (0, (4, 2)) if lag > len(LAG_COLOURS) else "-"


class PaperFigure(Figure):
    """A figure that shows itself in a notebook in this style, with or without pyplot."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with paper_style():
            self.savefig(buffer, format="png", dpi=120)
        return buffer.getvalue()


@contextmanager
def paper_figure(width: float, height: float) -> Iterator[Figure]:
    """Yield a figure of this size in inches, to be drawn in this style within the
    block.
    """
    with paper_style():
        yield PaperFigure(figsize=(width, height))


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Write `stem`.pdf, .svg and .png without dates inside, so that the same figure has
    the same bytes.
    """
    paths = [
        Path(f"{stem}.{ending}") for ending in FORMATS
    ]  # a stem may contain dots, as standard-1.2.3
    with paper_style():
        figure.draw_without_rendering()  # compute the layout once, not for every format
    made_by = f"sih (matplotlib {matplotlib.__version__})"
    undated: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Creator": made_by},
        "svg": {"Date": None, "Creator": made_by},
        "png": {"Software": made_by},
    }
    for path, ending in zip(paths, FORMATS, strict=True):
        buffer = io.BytesIO()
        with paper_style(), rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(
                None
            )  # with any other, even "none", each format is drawn twice
            figure.savefig(buffer, format=ending, metadata=undated[ending])
        with atomic_write(path) as file:
            file.write(buffer.getvalue())
    return paths


def doubling_positions(ax: Axes, first: int, last: int) -> None:
    """Make the axis of positions logarithmic, with ticks at doubling positions, to show
    short sequences too.
    """
    ticks = [2**n for n in range(64) if first <= 2**n <= last + 1]
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.set_xlim(first, last + 1)


def legend(figure: Figure, looks: Mapping[str, Look], columns: int, note: str = "") -> None:
    """Draw one legend for all panels, each curve once, and a note above it on missing
    models.
    """
    found: dict[Any, Any] = {}
    for ax in figure.axes:
        found.update(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    names = [
        *(name for name in looks if name in found),
        *(name for name in found if name not in looks),
    ]
    handles = [found[name] for name in names]
    figure.legend(
        handles, names, loc="outside lower center", ncols=columns, title=note, title_fontsize=6
    )


def not_shipped(names: Sequence[str]) -> str:
    """Return a note on the models that a figure lacks, "" if none is missing."""
    return (
        textwrap.fill(f"not shipped: {', '.join(names)}", 110, break_on_hyphens=False)
        if names
        else ""
    )
