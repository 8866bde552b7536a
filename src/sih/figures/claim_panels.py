"""Claim 1 in panels: the gap over many matrices, and for each true lag the expectations and running averages."""

from __future__ import annotations

import math

import torch
from matplotlib.figure import Figure

from sih.experiments.claim_cumulative import CumulativePaths
from sih.experiments.claim_expectations import ExpectationBars
from sih.experiments.claim_histogram import ClaimMargins
from sih.figures import style


def draw_claim_histogram(data: ClaimMargins) -> Figure:
    """Draw a histogram of the gaps, with zero and the smallest marked."""
    margins = torch.tensor(data.margins)
    least = margins.min().item()
    with style.paper_style():
        figure = Figure(figsize=(0.62 * style.PAGE, 2.4))
        ax = figure.subplots()
        ax.hist(margins.flatten().numpy(), bins=60, color=style.BLUE, lw=0)
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.axvline(least, color=style.RED, lw=0.9, ls=(0, (3, 2)), label=f"smallest: {least:.4f}")
        ax.set_xlim(left=min(0.0, 1.1 * least))
        ax.margins(x=0.02)
        ax.set_xlabel(r"$E_k - \max_{r\neq k} E_r$")
        ax.set_ylabel("matrices × true lags")
        many = "1 matrix" if len(margins) == 1 else f"{len(margins)} matrices"
        ax.set_title(f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}")
        ax.legend(loc="upper right")
    return figure


def draw_claim_expectations(data: ExpectationBars) -> Figure:
    """Draw a panel for each true lag. Its own bar is the highest where the claim holds."""
    count = len(data.lags)
    columns = min(count, 4 if count > 4 else count)
    rows = math.ceil(count / columns)
    places = range(count)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for j, ax in enumerate(panels.flat):
            if j >= count:
                ax.set_visible(False)
                continue
            colours = [style.RED if i == j else style.SKY for i in places]
            bars = {"elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            ax.bar(places, data.mean[j], yerr=data.spread[j], color=colours, width=0.8, error_kw=bars)
            ax.axhline(1 / count, color=style.BLACK, lw=0.5, ls=(0, (3, 2)))
            ax.set_title(f"true lag {data.lags[j]}")
            ax.set_xticks(places, [str(lag) for lag in data.lags], fontsize=5 if count > 8 else 7)
            if j >= count - columns:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("lag $r$")
        for ax in panels[:, 0]:
            ax.set_ylabel("$E_r$")
    return figure


def draw_claim_cumulative(data: CumulativePaths) -> Figure:
    """Draw a panel for each true lag: its own average in red above the others, dashes at the exact expectations."""
    count = len(data.lags)
    columns = min(count, 4 if count > 4 else count)
    rows = math.ceil(count / columns)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for j, ax in enumerate(panels.flat):
            if j >= count:
                ax.set_visible(False)
                continue
            steps = range(1, len(data.average[j][0]) + 1)
            for i in [i for i in range(count) if i != j] + [j]:  # the true lag on top
                own = i == j
                ax.plot(steps, data.average[j][i], color=style.RED if own else style.SKY, lw=1.2 if own else 0.6)
            ax.axhline(data.limit[j][j], color=style.RED, lw=0.6, ls=(0, (3, 2)))
            ax.axhline(max(v for i, v in enumerate(data.limit[j]) if i != j), color=style.BLUE, lw=0.6, ls=(0, (3, 2)))
            ax.set_title(f"true lag {data.lags[j]}")
            ax.set_xscale("log")
            if j >= count - columns:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("transitions seen")
        top = max(max(limit) for limit in data.limit)
        panels[0, 0].set_ylim(0, 2.2 * top)
        for ax in panels[:, 0]:
            ax.set_ylabel(r"average of $\tilde p_{i,r}$")
    return figure
