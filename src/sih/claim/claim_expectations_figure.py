"""The expectations of Claim 1, one panel per true lag."""

from __future__ import annotations

import math

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sih.claim.claim_expectations import ExpectationBars
from sih.claim.claim_histogram import ClaimConfig, printed_check
from sih.claim.lag_panels import is_papers, lag_colours, matrices_in_words, panels_of
from sih.claim.sampled import sampled_bars
from sih.results import style

PAPERS_RANGE = (0.080, 0.110)
"""The paper's axis, for 10 and for 25 states."""


def caption(config: ClaimConfig) -> str:
    """Return the caption for the requested matrices."""
    sampled = (
        ""
        if sampled_bars(printed_check(config)) is None
        else " Dots: the same mean by sampling as App. E prints it, a thousand sequences of length 1000 for each lag "
        "and matrix."
    )
    return (
        "Expected normalised transition probability of every lag r, a panel for each true lag, a colour for each lag "
        f"(the true lag's bar has a black frame), for {len(config.lags)} lags; exact expectations, means over matrices "
        f"({matrices_in_words(config)}), whiskers one standard deviation over matrices.{sampled} The axis is cut: it "
        "does not begin at 0. Dashes: one over the number of lags. No models are trained."
    )


def draw(data: ExpectationBars) -> Figure:
    """Draw one panel per true lag. The claim holds if the true lag's bar is the
    highest.
    """
    count = len(data.lags)
    places = range(count)
    colours = lag_colours(data.lags)
    with style.paper_style():
        low, high = _range(data)
        figure, panels = panels_of(data.lags, "lag $r$", f"$E_r$ (from {low:g})")
        for j, ax in enumerate(panels):
            whiskers = {"elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            ax.bar(
                places,
                data.mean[j].numpy(),
                yerr=data.spread[j].numpy(),
                color=list(colours.values()),
                edgecolor=[style.BLACK if i == j else "none" for i in places],
                linewidth=0.8,
                width=0.8,
                error_kw=whiskers,
            )
            if data.sampled is not None:
                ax.plot(places, data.sampled[j], color=style.BLACK, ls="", marker=".", ms=2.5)
            ax.axhline(1 / count, color=style.BLACK, lw=0.5, ls=(0, (3, 2)))
            ax.set_xticks(places, [str(lag) for lag in data.lags], fontsize=5 if count > 8 else 7)
            ax.set_ylim(low, high)
        handles: list[Artist] = [
            Patch(color=colour, label=f"lag {lag}") for lag, colour in colours.items()
        ]
        if data.sampled is not None:
            dots = panels[0].plot(
                [], [], color=style.BLACK, ls="", marker=".", ms=4, label="sampled as printed"
            )
            handles += dots
        figure.legend(handles=handles, loc="outside lower center", ncols=7)
    return figure


def _range(data: ExpectationBars) -> tuple[float, float]:
    """Return the ends of the axis: the paper's numbers if the bars fit."""
    least = (data.mean - data.spread).min().item()
    most = (data.mean + data.spread).max().item()
    low, high = PAPERS_RANGE
    if is_papers(data.lags) and data.mean.min() > low and data.mean.max() < high:
        return PAPERS_RANGE
    step = 10 ** math.floor(math.log10(most))
    return max(0.0, math.floor(20 * least / step - 1) * step / 20), math.ceil(
        20 * most / step
    ) * step / 20
