"""Claim 1 in panels, the gap, the expectations and running averages, and what follows: KL against beta, wrong lags."""

import math
from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.experiments.beta import EVIDENCES, BetaCurves
from sih.experiments.claim_cumulative import CumulativePaths
from sih.experiments.claim_expectations import ClaimMargins, ExpectationBars
from sih.experiments.wrong_lag import WrongLagRates
from sih.results import style
from sih.theory.rates import SCORES

_LOOKS = {
    "ML": (style.RED, "o", "ML"),
    "estimator": (style.BLUE, "s", r"estimator, $\sum \tilde p$"),
    "single head": (style.GREEN, "^", r"one head, every $K$-th $\tilde p$"),
}


def draw_claim_histogram(data: ClaimMargins) -> Figure:
    """Draw a histogram of the gaps, with zero and the smallest marked."""
    margins = torch.tensor(data.margins, dtype=torch.float64)
    least = margins.min().item()
    with style.paper_figure(0.62 * style.PAGE, 2.4) as figure:
        ax = figure.subplots()
        ax.hist(margins.flatten().numpy(), bins=60, color=style.BLUE, lw=0)
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.axvline(least, color=style.RED, lw=0.9, ls=(0, (3, 2)), label=f"smallest: {least:.4f}")
        ax.set_xlim(left=min(0.0, 1.1 * least))
        ax.margins(x=0.02)
        many = "1 matrix" if len(margins) == 1 else f"{len(margins)} matrices"
        ax.set_title(
            f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}"
        )
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
            ax.bar(
                places, data.mean[j], yerr=data.spread[j], color=colours, width=0.8, error_kw=bars
            )
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
                ax.plot(
                    steps,
                    data.average[j][i],
                    color=style.RED if own else style.SKY,
                    lw=1.2 if own else 0.6,
                )
            ax.axhline(data.limit[j][j], color=style.RED, lw=0.6, ls=(0, (3, 2)))
            ax.axhline(
                max(data.limit[j][i] for i in others), color=style.BLUE, lw=0.6, ls=(0, (3, 2))
            )
            ax.set_xscale("log")
        panels[0].set_ylim(0, 2.2 * max(max(limit) for limit in data.limit))
    return figure


def draw_beta(data: BetaCurves) -> Figure:
    """Draw a curve for each length, with BMA and ML as horizontal lines in its colour."""
    colours = style.LAG_COLOURS
    with style.paper_figure(style.PAGE, 2.9) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for ax, kind in zip(panels, EVIDENCES, strict=True):
            for j, length in enumerate(data.config.lengths):
                colour = colours[j % len(colours)]
                kl = torch.tensor(data.selective[kind][j], dtype=torch.float64)
                spread = torch.tensor(data.selective_error[kind][j], dtype=torch.float64)
                ax.plot(
                    data.config.betas, kl, color=colour, marker=".", ms=3, label=f"$T={length}$"
                )
                ax.fill_between(
                    data.config.betas, kl - spread, kl + spread, color=colour, alpha=0.15, lw=0
                )
                ax.axhline(data.bma[j], color=colour, lw=0.8, ls="-", alpha=0.6)
                ax.axhline(data.ml[j], color=colour, lw=0.8, ls=(0, (1, 1.5)))
            title = f"evidence: {kind} of $\\tilde p$" + (
                " (the paper's)" if kind == "mean" else ""
            )
            ax.set(title=title, xscale="log", yscale="log", xlabel=r"$\beta$")
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        # Late errors are rare events worth some tenths of a nat each: far below that nothing is resolved.
        panels[0].set_ylim(0.2 / (data.config.sequences * data.config.matrices), 0.5)
        panels[0].set_ylabel("KL to the true law (nats)")
        handles, labels = panels[0].get_legend_handles_labels()
        line = panels[0].plot([], [], color=style.BLACK, lw=0.8, alpha=0.6)
        dots = panels[0].plot([], [], color=style.BLACK, lw=0.8, ls=(0, (1, 1.5)))
        figure.legend(
            [*handles, *line, *dots], [*labels, "BMA", "ML"], loc="outside lower center", ncols=7
        )
    return figure


def draw_wrong_lag(data: WrongLagRates) -> Figure:
    """Draw each rule's rate as points with error bars, and as predicted."""
    with style.paper_figure(0.75 * style.PAGE, 3.0) as figure:
        ax = figure.subplots()
        floor = 1 / (data.config.blocks * data.config.sequences)
        for score in SCORES:
            colour, marker, name = _LOOKS[score]
            points = zip(
                data.transitions, data.measured[score], data.measured_error[score], strict=True
            )
            n, mean, error = zip(*(point for point in points if point[1] > 0), strict=True)
            label = f"{name}: $I={data.exponent[score]:.4f}$"
            low = [min(e, 0.9 * m) for m, e in zip(mean, error, strict=True)]
            ax.errorbar(
                n,
                mean,
                yerr=[low, error],
                color=colour,
                label=label,
                fmt=marker,
                ms=3,
                lw=0.7,
                capsize=1.5,
            )
            ax.plot(data.transitions, data.predicted[score], color=colour, lw=0.9)
        ax.set(yscale="log", ylim=(0.5 * floor, 1.2), xlim=(0, data.transitions[-1] + 2))
        ax.set(xlabel=r"transitions seen, $T - \hat{k}$", ylabel="probability of the wrong lag")
        lags = ", ".join(map(str, data.config.lags))
        ax.set_title(
            f"lags {{{lags}}}, {data.config.num_states} states; points measured, lines by saddle point"
        )
        ax.grid(True, which="major", lw=0.3, alpha=0.5)
        ax.legend(loc="lower left")
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
