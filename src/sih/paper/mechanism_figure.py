"""The values that the second layer gathers, cell by cell: the stored probabilities
before and after it.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from sih.paper.mechanism import Mechanism, MechanismConfig
from sih.results import style

CAPTION = (
    "The second layer of the construction, from a forward pass of its weights. Top left: the "
    "output of layer 1, one column per token; token j has the normalised probability of lag k at "
    "index j - k (colour: the lag; grey: the first tokens, which have no parent). Bottom: the "
    "attention of the last token in each second-layer head. Right: what the heads "
    "gathered for the last token, the product of the two; every transition of the past is there "
    "for every lag, and no "
    "two share an index of the same head."
)


def draw(data: Mechanism) -> Figure:
    """Draw the stored probabilities, the attention, and the gathered values."""
    size, heads = data.config.length, len(data.attention)
    with style.paper_figure(style.PAGE, 0.27 * (size + heads) + 1.25) as figure:
        grid = figure.subplots(2, 2, width_ratios=(size, 1.5 * heads), height_ratios=(size, heads))
        (before, after), (attention, empty) = grid
        empty.set_visible(False)
        _draw_stored(before, data)
        _draw_gathered(after, data)
        for head, row in enumerate(data.attention.tolist()):
            for token, value in enumerate(row):
                _cell(
                    attention,
                    token,
                    head,
                    value,
                    style.BLACK,
                    0.45 * value,
                    _number(value) if value > 1e-9 else "",
                )
        _frame(attention, size, heads)
        attention.set_yticks(range(heads), [f"head {head + 1}" for head in range(heads)])
        attention.set_xticks(range(size), [str(token + 1) for token in range(size)])
        attention.set_xlabel(f"token $j$: attention of token {size} in layer 2")
        colours = {"made by no lag": style.BLACK} | {
            f"lag {k}": _colour(data.config, k) for k in data.config.lags
        }
        patches = [
            Patch(color=c, alpha=0.2 if c == style.BLACK else 0.6, lw=0, label=n)
            for n, c in colours.items()
        ]
        figure.legend(
            handles=patches[1:] + patches[:1], loc="outside lower center", ncols=len(patches)
        )
    return figure


def _draw_stored(ax: Axes, data: Mechanism) -> None:
    size, first = data.config.length, data.config.lags[-1]
    for token, row in enumerate(data.stored.tolist()):
        for index, value in enumerate(row):
            if value > 1e-9:
                colour = style.BLACK if token < first else _colour(data.config, token - index)
                _cell(
                    ax,
                    token,
                    index,
                    value,
                    colour,
                    0.12 if token < first else _shade(value),
                    _number(value),
                )
    _frame(ax, size, size)
    ax.set_yticks(range(size), [str(index + 1) for index in range(size)])
    ax.set_xticks(range(size), [str(token + 1) for token in range(size)])
    ax.set(
        ylabel="index of the position block",
        title=r"before: $\tilde p_{j,k}$ at index $j-k$ of token $j$",
    )


def _draw_gathered(ax: Axes, data: Mechanism) -> None:
    size, heads = data.config.length, len(data.attention)
    highest = data.attention.amax(dim=1).tolist()
    for head in range(heads):
        for index, value in enumerate(data.gathered[head].tolist()):
            token = int(data.source[head, index])
            if token >= 0:
                share = value / highest[head]
                name = rf"$\tilde p_{{{token + 1},{token - index}}}$ "
                mixed = " mixed" if data.purity[head, index] < 0.999 else ""
                colour = _colour(data.config, token - index)
                _cell(ax, head, index, value, colour, _shade(share), name + _number(value) + mixed)
    _frame(ax, heads, size)
    ax.set_yticks([])
    labels = [
        f"head {head + 1}\n" + rf"$\tilde p\,/\,{1 / weight:.0f}$"
        for head, weight in enumerate(highest)
    ]
    ax.set_xticks(range(heads), labels)
    ax.set_title(f"after: gathered for token {size}")


def _cell(ax: Axes, x: int, y: int, value: float, colour: str, alpha: float, text: str) -> None:
    ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=min(1.0, alpha), lw=0))
    ax.text(x, y, text, ha="center", va="center", fontsize=6)


def _frame(ax: Axes, columns: int, rows: int) -> None:
    """Draw a grid of cells, the first row on top."""
    ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
    ax.set_xticks([x - 0.5 for x in range(columns + 1)], minor=True)
    ax.set_yticks([y - 0.5 for y in range(rows + 1)], minor=True)
    ax.grid(which="minor", lw=0.3, alpha=0.4)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(True)


def _colour(config: MechanismConfig, lag: int) -> str:
    return style.lag_colour(lag) if lag in config.lags else style.BLACK


def _shade(value: float) -> float:
    return 0.15 + 0.65 * value


def _number(value: float) -> str:
    return f"{value:.2f}"
