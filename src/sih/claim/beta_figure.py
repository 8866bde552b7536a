"""KL against beta: one curve per length, one row per distribution of matrices."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.claim.beta import EVIDENCES, BetaConfig, BetaCurves, BetaOfLaw
from sih.predictors.predictors import Evidence
from sih.results import style
from sih.results.tables import Rows, braces, law_in_words

KL_RANGE = (1e-4, 1.0)
"""The paper's axis of the KL."""


def caption(config: BetaConfig) -> str:
    """Return the caption for the requested task."""
    kinds = " and ".join(law_in_words(law) for law in config.laws)
    each = " of each kind" if len(config.laws) > 1 else ""
    lines = max(config.sequences, config.limit_sequences)
    return (
        "KL divergence from the true next-token distribution (nats) after T tokens against the inverse "
        "temperature of the "
        "estimator, with the mean of the normalised probabilities as evidence (left, the paper's) and with their sum "
        f"(right), lags {braces(config.lags)}, {config.num_states} states. Horizontal lines: the Bayesian model "
        f"average and maximum likelihood. Means over {config.matrices} matrices{each} "
        f"({kinds}), {config.sequences:,} sequences of each matrix, for the lines "
        f"{lines:,}; the KL is averaged over the lag given the tokens, bands "
        "are one standard error over matrices. The KL is cut at 1e-4, as on the paper's axes. No models are trained."
    )


def draw(data: BetaCurves) -> Figure:
    """Draw one curve per length, with BMA and ML as horizontal lines in its colour."""
    rows = len(data.laws)
    with style.paper_figure(style.PAGE, 0.6 + 2.0 * rows) as figure:
        grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
        for axes, (law, found) in zip(grid, data.laws.items(), strict=True):
            for ax, kind in zip(axes, EVIDENCES, strict=True):
                _draw_panel(ax, data, found, kind)
                papers = " (the paper's)" if kind == "mean" else ""
                ax.set_title(f"{law_in_words(law)}; evidence: {kind} of $\\tilde p$" + papers)
            axes[0].set_ylabel("KL to the true distribution (nats)")
        for ax in grid[-1]:
            ax.set_xlabel(r"$\beta$")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        line = grid[0, 0].plot([], [], color=style.BLACK, lw=0.8, alpha=0.6)
        dots = grid[0, 0].plot([], [], color=style.BLACK, lw=0.8, ls=(0, (1, 1.5)))
        figure.legend(
            [*handles, *line, *dots], [*labels, "BMA", "ML"], loc="outside lower center", ncols=7
        )
    return figure


def _draw_panel(ax: Axes, data: BetaCurves, found: BetaOfLaw, kind: Evidence) -> None:
    colours, betas = style.LAG_COLOURS, data.config.betas
    for j, length in enumerate(data.config.lengths):
        colour = colours[j % len(colours)]
        kl, spread = found.selective[kind][j], found.selective_error[kind][j]
        ax.plot(betas, kl, color=colour, marker=".", ms=3, label=f"$T={length}$")
        ax.fill_between(betas, kl - spread, kl + spread, color=colour, alpha=0.15, lw=0)
        ax.axhline(found.bma[j].item(), color=colour, lw=0.8, ls="-", alpha=0.6)
        ax.axhline(found.ml[j].item(), color=colour, lw=0.8, ls=(0, (1, 1.5)))
    ax.set(xscale="log", yscale="log", ylim=KL_RANGE)
    ax.grid(True, which="major", lw=0.3, alpha=0.5)


def table(data: BetaCurves) -> Rows:
    """Return one row per distribution and length: BMA, ML, the limit of large beta, and
    the best betas.
    """
    rows = [["matrices", "T", "BMA", "ML", "estimator, β→∞", "mean, best β", "sum, best β"]]
    for law, found in data.laws.items():
        for j, length in enumerate(data.config.lengths):
            best = []
            for kind in EVIDENCES:
                kl, beta = min(
                    zip(found.selective[kind][j].tolist(), data.config.betas, strict=True)
                )
                best.append(f"{abs(kl):.5f} (β={beta:g})")
            numbers = (f"{abs(x[j]):.5f}" for x in (found.bma, found.ml, found.limit))
            rows.append([law_in_words(law), str(length), *numbers, *best])
    return rows
