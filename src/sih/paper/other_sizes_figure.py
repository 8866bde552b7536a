"""KL along the sequence for alphabets of several sizes, one panel each."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.paper.other_sizes import CONSTRUCTION, OtherSizes, SizePanel
from sih.results import style
from sih.results.curves import mean_kl_table
from sih.results.tables import Rows, braces

CAPTION = (
    "KL divergence of the predicted from the true next-token distribution (nats) along the "
    "sequence, for 3, 5 and 10 states, lags {1,2,3}, length 128: BMA, ML, the construction, and "
    "standard transformers [1,3,1]. Those of 3 and 10 states are trained by preset auto; none "
    "that is trained as in the paper ships. One random matrix of each size, Dirichlet(1); all of "
    "a panel on the same fresh sequences, the KL averaged over the lag given the tokens; seeds "
    "averaged; bands are one standard error over sequences."
)
LOOKS: dict[str, style.Look] = {
    "BMA": (style.BLACK, "-", 1.2),
    "ML": (style.RED, (0, (1, 1)), 1.2),
    CONSTRUCTION: (style.GREEN, "-", 1.0),
    "trained by preset auto": (style.BLUE, "-", 1.0),
    "trained as in the paper": (style.ORANGE, "-", 1.0),
}
OTHERS: style.Look = (style.SKY, "-", 1.0)
"""Colours of models with another kind of training."""
LOWEST = 1e-4
"""The paper's axes end here."""


def draw(data: OtherSizes) -> Figure:
    """Draw one panel per number of states."""
    with style.paper_figure(style.PAGE, 2.3) as figure:
        axes = figure.subplots(1, len(data.panels), sharey=True, squeeze=False)[0]
        for panel, ax in zip(data.panels, axes, strict=True):
            draw_panel(ax, panel)
        axes[0].set_ylabel("KL to the true distribution (nats)")
        drawn = dict.fromkeys(label for panel in data.panels for label in panel.kl)
        style.legend(figure, {label: LOOKS.get(label, OTHERS) for label in drawn}, 5)
    return figure


def draw_panel(ax: Axes, panel: SizePanel) -> None:
    """Draw the curves of one size, from the first position with information on the lag."""
    for label, found in panel.kl.items():
        colour, dashes, width = LOOKS.get(label, OTHERS)
        first = max(panel.lags)
        mean, error = found.mean[first:], found.error[first:]
        seen = range(first + 1, first + 1 + len(mean))
        low, middle, high = (
            (mean + errors * error).clamp_min(LOWEST / 10).numpy() for errors in (-1, 0, 1)
        )
        ax.plot(seen, middle, color=colour, linestyle=dashes, linewidth=width, label=label)
        ax.fill_between(seen, low, high, color=colour, alpha=0.2, linewidth=0)
    ax.set(yscale="log", ylim=(LOWEST, 1), xlim=(0, len(panel.kl["ML"].mean) + 1))
    ax.set(title=f"{panel.states} states, lags {braces(panel.lags)}", xlabel="tokens seen")


def table(data: OtherSizes) -> Rows:
    """Return mean KL beyond the largest lag: one row per label, one column per size."""
    heading, *rows = mean_kl_table(data.panels)
    return [[heading[0], *(f"{panel.states} states" for panel in data.panels)], *rows]
