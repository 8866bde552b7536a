"""An inference as a picture: the posterior along the series, and the transition matrix
with its intervals.
"""

import math

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.beyond.real_series.inference import Inference
from sih.results import style

SHOWN, POINTS, NAMED = 12, 2000, 8
"""Numbers of lags with a curve, of points of a curve, and of states with intervals."""


def draw_inference(data: Inference, symbols: tuple[str, ...] = ()) -> Figure:
    """Draw the posterior of each lag along the series, and each row of P under the best
    lag with its intervals.
    """
    names = symbols or tuple(map(str, range(data.num_states)))
    with style.paper_figure(style.PAGE, 2.5) as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        _draw_posterior(left, data)
        _draw_rows(right, data, names)
    return figure


def _draw_posterior(ax: Axes, data: Inference) -> None:
    time = len(data.along)
    places = (
        torch.unique(torch.logspace(0, math.log10(time), POINTS).round().long().clamp(1, time)) - 1
    )
    best = data.posterior.argsort(descending=True)[:SHOWN].tolist()
    for row in sorted(best):
        lag = data.lags[row]
        look = {"color": style.lag_colour(lag), "ls": style.lag_dashes(lag)}
        ax.plot(places + 1, data.along[places, row], label=f"lag {lag}", **look)
    ax.set(
        xscale="log",
        ylim=(-0.02, 1.02),
        xlabel="tokens seen",
        ylabel="posterior of the lag",
        title="Which lag",
    )
    ax.grid(True, which="major", lw=0.3, alpha=0.5)
    ax.legend(ncols=2 if len(best) > 4 else 1, loc="best")


def _draw_rows(ax: Axes, data: Inference, names: tuple[str, ...]) -> None:
    """Draw one group of points per state: the probabilities of its successors."""
    shown = min(NAMED, data.num_states)
    for after in range(shown):
        colour = style.LAG_COLOURS[after % len(style.LAG_COLOURS)]
        x = torch.arange(shown) + 0.8 * ((after + 0.5) / shown - 0.5)
        y, (low, high) = data.P[:shown, after], data.interval[:shown, after].unbind(dim=-1)
        reach = torch.stack([y - low, high - y]).clamp_min(0)
        ax.errorbar(
            x,
            y,
            yerr=reach,
            color=colour,
            fmt="o",
            ms=3,
            lw=0.8,
            capsize=1.5,
            label=_short(names[after]),
        )
    ax.set_xticks(range(shown), [_short(name) for name in names[:shown]])
    more = f", {shown} of {data.num_states} states" if data.num_states > shown else ""
    known = data.lag is not None
    before = f"state {data.lag} back" if known else "earlier state"
    ax.set(ylim=(-0.02, 1.02), xlabel=before, ylabel="probability of the next")
    ax.set_title(
        f"$P$ {f'under lag {data.lag}' if known else 'of the prior'}, 95 % intervals{more}"
    )
    ax.legend(title="next", ncols=2, fontsize=6, title_fontsize=6)


def _short(name: str) -> str:
    return name if len(name) <= 9 else f"{name[:8]}…"
