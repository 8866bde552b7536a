"""KL against beta, a curve for each length."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.claim.beta import EVIDENCES, BetaCurves
from sih.results import style
from sih.results.tables import Rows

CAPTION = (
    "KL divergence from the true next-token distribution (nats) after T tokens against the inverse temperature of the "
    "estimator, with the mean of the normalised probabilities as evidence (left, the paper's) and with their sum "
    "(right), lags {1,2,3}. Horizontal lines: the Bayesian model average and maximum likelihood. Means over sequences "
    "and matrices, bands one standard error over matrices. No models are trained."
)


def draw(data: BetaCurves) -> Figure:
    """Draw a curve for each length, with BMA and ML as horizontal lines in its colour."""
    colours = style.LAG_COLOURS
    with style.paper_figure(style.PAGE, 2.9) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for ax, kind in zip(panels, EVIDENCES, strict=True):
            for j, length in enumerate(data.config.lengths):
                colour = colours[j % len(colours)]
                kl, spread = data.selective[kind][j], data.selective_error[kind][j]
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
        panels[0].set_ylabel("KL to the true distribution (nats)")
        handles, labels = panels[0].get_legend_handles_labels()
        line = panels[0].plot([], [], color=style.BLACK, lw=0.8, alpha=0.6)
        dots = panels[0].plot([], [], color=style.BLACK, lw=0.8, ls=(0, (1, 1.5)))
        figure.legend(
            [*handles, *line, *dots], [*labels, "BMA", "ML"], loc="outside lower center", ncols=7
        )
    return figure


def table(data: BetaCurves) -> Rows:
    """Make one row for each length: BMA, ML, the limit of large beta, the best beta of each evidence with its KL."""
    rows = [["T", "BMA", "ML", "estimator, β→∞", "mean, best β", "sum, best β"]]
    for j, length in enumerate(data.config.lengths):
        best = []
        for kind in EVIDENCES:
            kl, beta = min(zip(data.selective[kind][j].tolist(), data.config.betas, strict=True))
            best.append(f"{abs(kl):.5f} (β={beta:g})")
        rows.append(
            [str(length), *(f"{abs(x[j]):.5f}" for x in (data.bma, data.ml, data.limit)), *best]
        )
    return rows
