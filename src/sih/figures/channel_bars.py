"""Bars of where evidence comes from, a line for each model, beside what its loss costs."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.analysis.channels import Channels
from sih.experiments.channel_account import Accounts
from sih.results import style

SHARES = {
    "looked": style.ORANGE,
    "carried": style.BLUE,
    "direct": style.GREEN,
    "embedding": style.PURPLE,
}
COSTS = {
    "intact": (style.BLACK, "o", "as it is"),
    "attention": (style.ORANGE, "s", "where it looked := mean"),
    "values": (style.BLUE, "D", "what it carried := mean"),
    "both": ("#999999", "x", "both := mean"),
}


def draw_channels(data: Accounts) -> Figure:
    """Draw shares on the left and mean KL on the right, plainly trained models first."""
    labels = {
        name: name
        + ("  (plain)" if one.model.training == "paper" and not name.startswith("paper-") else "")
        for name, one in data.models.items()
    }
    with style.paper_figure(1.25 * style.PAGE, 0.19 * len(labels) + 1.1) as figure:
        left, right = figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": (1.2, 1)})
        draw_rows(left, right, {labels[name]: one.channels for name, one in data.models.items()})
        figure.set_layout_engine("constrained", w_pad=0.12)  # long names
        figure.legend(loc="outside lower center", ncols=4)
    return figure


def draw_rows(left: Axes, right: Axes, rows: Mapping[str, Channels]) -> None:
    """Draw one row for each of the channels measured, the first on top."""
    for y, found in enumerate(rows.values()):
        start = 0.0
        for name, colour in SHARES.items():
            share, error = found.shares.get(name, (0.0, 0.0))
            label = name if y == 0 else None
            left.barh(y, max(share, 0.0), left=start, height=0.7, color=colour, label=label, lw=0)
            if name in ("looked", "carried"):
                left.errorbar(start + max(share, 0.0), y, xerr=error, color="black", lw=0.7)
            start += max(share, 0.0)
        for name, (colour, marker, said) in COSTS.items():
            mean, error = found.kl[name]
            said = said if y == 0 else ""
            right.errorbar(
                [mean],
                [y],
                xerr=[error],
                label=said,
                color=colour,
                marker=marker,
                ms=3,
                lw=0.7,
                ls="",
            )
    left.set_yticks(range(len(rows)), list(rows), fontsize=6)
    left.set_ylim(len(rows) - 0.5, -0.5)
    left.set(xlim=(0, 1.02), xlabel="share of the evidence in the last layer's scores")
    right.set(xscale="log", xlabel="mean KL to the truth")
    right.grid(True, axis="x", which="major", lw=0.3, alpha=0.5)
