"""Averages along a sequence, one panel per true lag."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from sih.claim.claim_cumulative import CumulativeConfig, CumulativePaths
from sih.claim.lag_panels import is_papers, lag_colours, panels_of
from sih.results import style
from sih.results.tables import law_in_words

PAPERS_RANGE = (0.05, 0.12)
"""The paper's axis of the averages, for 10 and for 25 states."""


def caption(config: CumulativeConfig) -> str:
    """Return the caption for the requested task."""
    drawn = law_in_words(config.matrix_law, config.concentration)
    return (
        "Cumulative average of the normalised transition probabilities along one sequence of each true lag, a colour "
        f"for each of {len(config.lags)} lags (the true lag's line is the thick one), against the number of "
        f"transitions seen, for one matrix with {config.num_states} states ({drawn}). Dashes: the exact expectation of "
        "the true lag (black) and the largest of the others (grey). The axis is cut at both ends: the first averages "
        "lie beyond it. One sequence a panel, so no error bars. No models are trained."
    )


def draw(data: CumulativePaths) -> Figure:
    """Draw one panel per true lag: its average as a thick line, the exact expectations
    as dashes.
    """
    colours = lag_colours(data.lags)
    seen = data.average.shape[-1]
    with style.paper_style():
        figure, panels = panels_of(data.lags, "transitions seen", r"average of $\tilde p_{i,r}$")
        for j, ax in enumerate(panels):
            others = [i for i in range(len(data.lags)) if i != j]
            for i in [*others, j]:  # the true lag on top
                width = 1.8 if i == j else 0.6
                colour = colours[data.lags[i]]
                ax.plot(range(1, seen + 1), data.average[j][i], color=colour, lw=width)
            dashes: dict[str, Any] = {"lw": 0.7, "ls": (0, (3, 2))}
            ax.axhline(data.limit[j, j].item(), color=style.BLACK, **dashes)
            ax.axhline(data.limit[j, others].max().item(), color="0.45", **dashes)
            ax.set_xlim(0, seen)
        low, high = PAPERS_RANGE if _fits_papers_axis(data) else (0, 2.2 * data.limit.max().item())
        panels[0].set_ylim(low, high)
        lines = [
            panels[0].plot([], [], color=colour, lw=1.8, label=f"lag {lag}")[0]
            for lag, colour in colours.items()
        ]
        dashed: dict[str, Any] = {"lw": 0.8, "ls": (0, (3, 2))}
        lines += panels[0].plot([], [], color=style.BLACK, label="true lag, exactly", **dashed)
        lines += panels[0].plot([], [], color="0.45", label="largest other, exactly", **dashed)
        figure.legend(handles=lines, loc="outside lower center", ncols=7)
    return figure


def _fits_papers_axis(data: CumulativePaths) -> bool:
    low, high = PAPERS_RANGE
    return is_papers(data.lags) and low < data.limit.min().item() <= data.limit.max().item() < high
