"""A profile: the weights of its heads, their reads, and the resulting sum."""

import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sih.heads.profiles import Profile
from sih.results import style

SHOWN = 16
"""Offsets that are drawn."""


def draw_profile(data: Profile) -> Figure:
    """Draw weights u along the past, reads g of the query's heads, and their sum, minus
    a line.
    """
    span, shown = data.span, min(SHOWN, data.weights.shape[1])
    with style.paper_figure(style.PAGE, 2.2) as figure:
        weights, reads, sums = figure.subplots(1, 3)
        for head in range(data.heads):
            look = {
                "color": style.LAG_COLOURS[head % len(style.LAG_COLOURS)],
                "marker": ".",
                "lw": 0.8,
            }
            weights.plot(data.weights[head, :shown], label=f"head {head + 1}", **look)
            reads.plot(range(-span, shown), data.query[head, : shown + span], **look)
        weights.set(
            title="weights $u_h(o)$",
            xlabel="offset $o$",
            ylim=(0, 1.25 * float(data.weights.max())),
        )
        reads.set(title="reads $g_h(n)$", xlabel="$n$")
        x = torch.arange(-span, span + 1)
        for o in range(min(4, shown)):
            f = (data.weights[:, o, None] * data.query[:, o + x + span]).sum(dim=0)
            line = f[0] + (f[-1] - f[0]) * (x - x[0]) / (2 * span)  # shared by all lags
            sums.plot(x, f - line, marker=".", lw=0.8, color=style.BLACK, alpha=1 - o / 5)
        sums.set(
            title=r"$\sum_h u_h(o)\,g_h(o+x)$, less a line", xlabel="$x$, a difference of two lags"
        )
        sums.xaxis.set_major_locator(MaxNLocator(integer=True))
        weights.legend(loc="upper center", ncols=3)
    return figure
