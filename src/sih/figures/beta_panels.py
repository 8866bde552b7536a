"""KL against beta, a panel for each kind of evidence."""

import torch
from matplotlib.figure import Figure

from sih.experiments.beta import EVIDENCES, BetaCurves
from sih.figures import style


def draw_beta(data: BetaCurves) -> Figure:
    """Draw a curve for each length, with BMA and ML as horizontal lines in its colour."""
    colours = style.LAG_COLOURS
    with style.paper_figure(style.PAGE, 2.9) as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for ax, kind in zip(panels, EVIDENCES, strict=True):
            for j, length in enumerate(data.config.lengths):
                colour = colours[j % len(colours)]
                kl = torch.tensor(data.selective[kind][j])
                spread = torch.tensor(data.selective_error[kind][j])
                ax.plot(data.config.betas, kl, color=colour, marker=".", ms=3, label=f"$T={length}$")
                ax.fill_between(data.config.betas, kl - spread, kl + spread, color=colour, alpha=0.15, lw=0)
                ax.axhline(data.bma[j], color=colour, lw=0.8, ls="-", alpha=0.6)
                ax.axhline(data.ml[j], color=colour, lw=0.8, ls=(0, (1, 1.5)))
            title = f"evidence: {kind} of $\\tilde p$" + (" (the paper's)" if kind == "mean" else "")
            ax.set(title=title, xscale="log", yscale="log", xlabel=r"$\beta$")
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        # Late errors are rare events worth some tenths of a nat each: far below that nothing is resolved.
        panels[0].set_ylim(0.2 / (data.config.sequences * data.config.matrices), 0.5)
        panels[0].set_ylabel("KL to the true law (nats)")
        handles, labels = panels[0].get_legend_handles_labels()
        line = panels[0].plot([], [], color=style.BLACK, lw=0.8, alpha=0.6)
        dots = panels[0].plot([], [], color=style.BLACK, lw=0.8, ls=(0, (1, 1.5)))
        figure.legend([*handles, *line, *dots], [*labels, "BMA", "ML"], loc="outside lower center", ncols=7)
    return figure
