"""Averages along a sequence, a panel for each true lag."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.claim.claim_cumulative import CumulativePaths
from sih.claim.lag_panels import panels_of
from sih.results import style

CAPTION = (
    "Cumulative average of the normalised transition probabilities along one sequence of each true lag (red) of the "
    "paper's twelve, against the number of transitions seen, for one matrix. Dashes: the exact expectation of the "
    "true lag (red) and the largest of the others (blue). One sequence a panel, so no error bars. No models are "
    "trained."
)


def draw(data: CumulativePaths) -> Figure:
    """Draw a panel for each true lag: its own average in red above the others, dashes at the exact expectations."""
    with style.paper_style():
        figure, panels = panels_of(data.lags, "transitions seen", r"average of $\tilde p_{i,r}$")
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
            ax.axhline(data.limit[j, j].item(), color=style.RED, lw=0.6, ls=(0, (3, 2)))
            ax.axhline(data.limit[j, others].max().item(), color=style.BLUE, lw=0.6, ls=(0, (3, 2)))
            ax.set_xscale("log")
        panels[0].set_ylim(0, 2.2 * data.limit.max().item())
    return figure
