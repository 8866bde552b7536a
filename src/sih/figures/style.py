"""The one look of all figures: paper width, legible in print, safe for colour-blind eyes, the same bytes every time."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import rc_context
from matplotlib.figure import Figure

from sih.files import atomic_write

PAGE = 6.75
"""Width of the text of a page, in inches."""
FORMATS = ("pdf", "svg", "png")

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
"""Okabe and Ito's palette."""
LAG_COLOURS = (ORANGE, RED, BLUE, GREEN, PURPLE, SKY, YELLOW, BLACK)

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


@contextmanager
def paper_style() -> Iterator[None]:
    """Set the look within the block: every figure is drawn and saved inside it."""
    with rc_context(_RC):
        yield


@contextmanager
def paper_figure(width: float, height: float) -> Iterator[Figure]:
    """Make a figure of so many inches, to be drawn in this look within the block."""
    with paper_style():
        yield Figure(figsize=(width, height))


def save(figure: Figure, stem: str | Path) -> list[Path]:
    """Write `stem`.pdf, .svg and .png, without dates inside, so that the same figure is the same bytes."""
    paths = [Path(f"{stem}.{ending}") for ending in FORMATS]  # a stem may have dots of its own, as standard-1.2.3
    with paper_style():
        figure.draw_without_rendering()  # find the layout once, not for every format
    made_by = f"sih (matplotlib {matplotlib.__version__})"
    undated: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Creator": made_by},
        "svg": {"Date": None, "Creator": made_by},
        "png": {"Software": made_by},
    }
    for path, ending in zip(paths, FORMATS, strict=True):
        buffer = io.BytesIO()
        with paper_style(), rc_context({"figure.constrained_layout.use": False}):
            figure.set_layout_engine(None)  # with any other, even "none", each format is drawn twice
            figure.savefig(buffer, format=ending, metadata=undated[ending])
        with atomic_write(path) as file:
            file.write(buffer.getvalue())
    return paths
