"""Residue classes of lags: the chains of a window, and the rivals covered by theorems."""

from __future__ import annotations

from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from sih.claim.claim_theorem import (
    LagClasses,
    TheoremCover,
)
from sih.claim.coverage import OPEN
from sih.results import style
from sih.results.tables import Rows, braces

CAPTION = (
    "Where Claim 1 is a theorem. Left: under true lag k (red) the tokens that the lags point at fall into independent "
    "chains, one for each residue class of the lags modulo k; the letter under a rival is the lemma that puts it below "
    "the true lag for every transition matrix, a question mark an open case. Right: the paper's twelve lags; a number "
    "is the size of the lag's class, on the diagonal of the true lag's own, and a box marks rivals in the true lag's "
    "class. Nothing is sampled and no models are trained."
)

NAMES = {
    "exchange": ("X", style.SKY),
    "two lags": ("X", style.SKY),
    "Lemma D": ("D", style.BLUE),
    "Lemma E": ("E", style.GREEN),
    "Lemma M": ("M", style.PURPLE),
    "Lemma T": ("T", style.YELLOW),
}
"""The letter and colour of each theorem; open cases are a question mark on white."""

OPEN_CELL = ("?", "#FFFFFF")


def _look(status: str) -> tuple[str, str]:
    return NAMES.get(status.removeprefix("proven: "), OPEN_CELL)


def draw(data: TheoremCover) -> Figure:
    """Draw the chains of each small lag set on the left, and the pairs of the large one
    on the right.
    """
    with style.paper_figure(style.PAGE, 3.9) as figure:
        rows = [(example, j) for example in data.examples for j in range(len(example.lags))]
        grid = figure.add_gridspec(len(rows), 2, width_ratios=(0.38, 0.62))
        furthest = max(example.lags[-1] for example in data.examples)
        for place, (example, j) in enumerate(rows):
            _draw_chains(figure.add_subplot(grid[place, 0]), example, j, furthest)
        whole = figure.add_subplot(grid[:, 1])
        _draw_pairs(whole, data.whole)
        _draw_legend(whole, [*data.examples, data.whole])
    return figure


def _draw_chains(ax: Axes, data: LagClasses, j: int, furthest: int) -> None:
    """Draw tokens from left to right, the next one last; arrows are transitions of each
    class's chain.
    """
    k = data.lags[j]
    ax.set(xlim=(-furthest - 1.3, 0.5), ylim=(-1.2, 1.05))
    ax.axis("off")
    if j == 0:
        ax.set_title(f"lags {braces(data.lags)}", loc="left", fontsize=8, pad=2)
    ax.text(-furthest - 1.25, 0, f"$k = {k}$", ha="left", va="center", fontsize=8)
    for number, members in enumerate(data.classes[j]):
        chain = [-lag for lag in sorted(members, reverse=True)] + ([0] if k in members else [])
        colour = style.RED if number == 0 else style.BLACK
        for old, new in pairwise(chain):
            bend = -0.75 / (new - old) if new - old > 1 else 0.0  # as high at any distance
            arrow = FancyArrowPatch(
                (old, 0), (new, 0), connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=7,
                shrinkA=6, shrinkB=6, color=colour, lw=0.8, clip_on=False,
            )  # fmt: skip
            ax.add_patch(arrow)
    for position in range(-furthest, 1):
        lag = -position
        if lag not in data.lags and lag:
            ax.plot(position, 0, "o", ms=2.5, color="#BBBBBB")
            continue
        own = {0: ("$X_i$", style.BLACK), k: ("$k$", style.RED)}
        letter, face = own[lag] if lag in own else _look(data.status[j][data.lags.index(lag)])
        ax.plot(position, 0, "o", ms=8.5, mfc=face, mec=style.BLACK, mew=0.6, zorder=3)
        ax.text(position, -1.0, letter, ha="center", va="center", fontsize=7)


def _draw_pairs(ax: Axes, data: LagClasses) -> None:
    """Draw one cell per true lag (row) and rival (column), coloured by theorem, with
    the size of the rival's class.
    """
    count = len(data.lags)
    for j, k in enumerate(data.lags):
        own = data.members(j, k)
        for i, r in enumerate(data.lags):
            colour = style.RED if i == j else _look(data.status[j][i])[1]
            ax.add_patch(
                Rectangle((i - 0.5, j - 0.5), 1, 1, facecolor=colour, edgecolor="#DDDDDD", lw=0.5)
            )
            if i != j and r in own:
                ax.add_patch(
                    Rectangle(
                        (i - 0.38, j - 0.38), 0.76, 0.76, fill=False, edgecolor=style.BLACK, lw=0.9
                    )
                )
            text = "white" if colour in (style.BLUE, style.RED, style.GREEN) else "black"
            ax.text(
                i,
                j,
                str(len(data.members(j, r))),
                ha="center",
                va="center",
                fontsize=6.5,
                color=text,
            )
    ax.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(count), [str(lag) for lag in data.lags])
    ax.set_yticks(range(count), [str(lag) for lag in data.lags])
    ax.set(xlabel="rival $r$", ylabel="true lag $k$")
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    done, pairs = proven(data)
    ax.set_title(
        f"{done} of {pairs} pairs are theorems; in a cell: size of the class of $r$", fontsize=8
    )


def _draw_legend(ax: Axes, sets: list[LagClasses]) -> None:
    """Draw the names of the theorems that occur, with the marks of the true lag and of
    open cases.
    """
    used = {word.removeprefix("proven: ") for data in sets for row in data.status for word in row}
    keys = [Patch(facecolor=style.RED, label="true lag ($k$)")]
    keys += [
        Patch(facecolor=NAMES[name][1], label=f"{name} ({NAMES[name][0]})")
        for name in NAMES
        if name in used
    ]
    keys += (
        [Patch(facecolor="white", edgecolor="#999999", label="open (?)")] if OPEN in used else []
    )
    ax.legend(
        handles=keys,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=4,
        columnspacing=1.2,
        handlelength=1.1,
    )


def proven(data: LagClasses) -> tuple[int, int]:
    """Return the number of pairs of true lag and rival that are theorems, and the
    number of pairs.
    """
    words = [word for row in data.status for word in row if word]
    return sum(word != OPEN for word in words), len(words)


def table(data: TheoremCover) -> Rows:
    """Return one row per true lag and rival of the large set."""
    rows = [["true lag", "rival", "class of the true lag", "class of the rival", "Claim 1"]]
    for j, k in enumerate(data.whole.lags):
        for i, r in enumerate(data.whole.lags):
            if r != k:
                sizes = (" ".join(map(str, data.whole.members(j, lag))) for lag in (k, r))
                rows.append([str(k), str(r), *sizes, data.whole.status[j][i]])
    return rows
