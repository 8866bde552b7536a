"""A batch at a glance: its sequences, sorted by lag, and the mutual information of
tokens by offset.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from sih.results import style
from sih.task import Batch

SEQUENCES, TOKENS, OFFSETS = 24, 48, 12
"""Numbers of sequences, tokens and offsets drawn."""


def draw_batch(data: Batch) -> Figure:
    """Draw the first sequences of every lag, and mutual information by offset, which
    peaks at the lag.
    """
    if not data.tokens.numel():
        raise ValueError("an empty batch has no picture")
    with style.paper_figure(style.PAGE, 2.6) as figure:
        cells, curves = figure.subplots(1, 2, width_ratios=(1.7, 1))
        _draw_cells(cells, data)
        _draw_information(curves, data)
    return figure


def _draw_cells(ax: Axes, data: Batch) -> None:
    if data.lags.ndim > 1:
        names, rows = ["lags\nswitch"], [data.tokens[:SEQUENCES, :TOKENS]]
    else:
        lags = data.lags.unique().tolist()
        names = [f"lag {lag}" for lag in lags]
        rows = [
            data.tokens[data.lags == lag][: max(1, SEQUENCES // len(lags)), :TOKENS] for lag in lags
        ]
    states = int(data.tokens.max()) + 1
    colours = (
        ListedColormap(style.LAG_COLOURS[:states])
        if states <= len(style.LAG_COLOURS)
        else "viridis"
    )
    cells = torch.cat(rows).cpu()
    extent = (
        0.5,
        cells.shape[1] + 0.5,
        len(cells) - 0.5,
        -0.5,
    )  # positions from 1, as in the paper
    look: dict[str, Any] = {
        "cmap": colours,
        "aspect": "auto",
        "interpolation": "nearest",
        "alpha": 0.8,
        "extent": extent,
    }
    image = ax.imshow(cells.numpy(), vmin=-0.5, vmax=states - 0.5, **look)
    edge = 0
    for name, shown in zip(names, rows, strict=True):
        ax.text(0, edge + len(shown) / 2 - 0.5, name, ha="right", va="center", fontsize=7)
        edge += len(shown)
        ax.axhline(edge - 0.5, color="white", lw=2)
    ax.set(yticks=[], xlabel="position", title="the first sequences")
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(
        image, ax=ax, ticks=range(states) if states <= 8 else None, aspect=25, pad=0.01
    )
    bar.ax.tick_params(length=0, labelsize=6)
    bar.outline.set_visible(False)
    bar.set_label("state", fontsize=7)


def _draw_information(ax: Axes, data: Batch) -> None:
    """Draw one curve per lag, from the tokens with a parent and the tokens before them."""
    offsets = range(1, min(OFFSETS, data.tokens.shape[1] - 1) + 1)
    lag_of = data.lags if data.lags.ndim > 1 else data.lags[:, None].expand_as(data.tokens)
    lags = [
        lag for lag in data.lags.unique().tolist() if lag > 0 or data.lags.ndim == 1
    ]  # 0: no parent
    for lag in lags:
        found = []
        for o in offsets:
            made = lag_of[:, o:] == lag
            found.append(mutual_information(data.tokens[:, :-o][made], data.tokens[:, o:][made]))
        look = {"color": style.lag_colour(lag), "ls": style.lag_dashes(lag)}
        ax.plot(offsets, found, marker="o", ms=2.5, lw=1, label=f"lag {lag}", **look)
    ax.set(
        xlabel="positions apart",
        ylabel="mutual information (nats)",
        title="what a token says of another",
    )
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend()


def mutual_information(x: Int[Tensor, " pair"], y: Int[Tensor, " pair"]) -> float:
    r"""Return an estimate of
    $\sum_{ab} \hat p_{ab} \log \frac{\hat p_{ab}}{\hat p_a \hat p_b}$ in nats, from
    counts of pairs.

    >>> mutual_information(torch.tensor([0, 1, 0, 1]), torch.tensor([1, 0, 1, 0]))  # log 2
    0.6931471805599453
    """
    states = int(torch.cat([x, y]).max()) + 1 if len(x) else 1
    counts = torch.bincount(x * states + y, minlength=states**2).double().view(states, states)
    joint: Float[Tensor, "state state"] = counts / counts.sum().clamp_min(1)
    apart, together = [joint.sum(dim=0), joint.sum(dim=1)], [joint.flatten()]
    entropy, whole = (
        float(torch.special.entr(torch.cat(laws)).sum()) for laws in (apart, together)
    )
    return entropy - whole
