"""Claim 1 in panels: the gap over many matrices, and for each true lag the expectations and running averages."""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.claim_cumulative import CumulativePaths
from sih.experiments.claim_expectations import ExpectationBars
from sih.experiments.claim_histogram import ClaimMargins
from sih.figures import style


def draw_claim_histogram(data: ClaimMargins) -> Figure:
    """Draw a histogram of the gaps, with zero and the smallest marked."""
    margins = torch.tensor(data.margins)
    least = margins.min().item()
    with style.paper_figure(0.62 * style.PAGE, 2.4) as figure:
        ax = figure.subplots()
        ax.hist(margins.flatten().numpy(), bins=60, color=style.BLUE, lw=0)
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.axvline(least, color=style.RED, lw=0.9, ls=(0, (3, 2)), label=f"smallest: {least:.4f}")
        ax.set_xlim(left=min(0.0, 1.1 * least))
        ax.margins(x=0.02)
        many = "1 matrix" if len(margins) == 1 else f"{len(margins)} matrices"
        ax.set_title(f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}")
        ax.set(xlabel=r"$E_k - \max_{r\neq k} E_r$", ylabel="matrices × true lags")
        ax.legend(loc="upper right")
    return figure


def draw_claim_expectations(data: ExpectationBars) -> Figure:
    """Draw a panel for each true lag. Its own bar is the highest where the claim holds."""
    count = len(data.lags)
    places = range(count)
    with style.paper_style():
        figure, panels = _panels(data.lags, "lag $r$", "$E_r$")
        for j, ax in enumerate(panels):
            colours = [style.RED if i == j else style.SKY for i in places]
            bars = {"elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            ax.bar(places, data.mean[j], yerr=data.spread[j], color=colours, width=0.8, error_kw=bars)
            ax.axhline(1 / count, color=style.BLACK, lw=0.5, ls=(0, (3, 2)))
            ax.set_xticks(places, [str(lag) for lag in data.lags], fontsize=5 if count > 8 else 7)
    return figure


def draw_claim_cumulative(data: CumulativePaths) -> Figure:
    """Draw a panel for each true lag: its own average in red above the others, dashes at the exact expectations."""
    with style.paper_style():
        figure, panels = _panels(data.lags, "transitions seen", r"average of $\tilde p_{i,r}$")
        for j, ax in enumerate(panels):
            steps = range(1, len(data.average[j][0]) + 1)
            others = [i for i in range(len(data.lags)) if i != j]
            for i in [*others, j]:  # the true lag on top
                own = i == j
                ax.plot(steps, data.average[j][i], color=style.RED if own else style.SKY, lw=1.2 if own else 0.6)
            ax.axhline(data.limit[j][j], color=style.RED, lw=0.6, ls=(0, (3, 2)))
            ax.axhline(max(data.limit[j][i] for i in others), color=style.BLUE, lw=0.6, ls=(0, (3, 2)))
            ax.set_xscale("log")
        panels[0].set_ylim(0, 2.2 * max(max(limit) for limit in data.limit))
    return figure


def _panels(lags: Sequence[int], xlabel: str, ylabel: str) -> tuple[Figure, list[Axes]]:
    """Make a panel for each true lag, in rows of up to four."""
    columns = min(len(lags), 4)
    rows = math.ceil(len(lags) / columns)
    figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    panels = grid.flatten().tolist()
    for ax in panels[len(lags) :]:
        ax.set_visible(False)
    for ax, lag in zip(panels, lags, strict=False):
        ax.set_title(f"true lag {lag}")
    for ax in panels[len(lags) - columns : len(lags)]:
        ax.tick_params(labelbottom=True)
        ax.set_xlabel(xlabel)
    for ax in grid[:, 0]:
        ax.set_ylabel(ylabel)
    return figure, panels[: len(lags)]
