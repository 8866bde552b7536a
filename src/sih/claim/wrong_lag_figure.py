"""Rates of the wrong lag: measured points, and lines by saddle point."""

from __future__ import annotations

import torch
from matplotlib.figure import Figure

from sih.claim.rates import SCORES
from sih.claim.wrong_lag import (
    WrongLagRates,
)
from sih.results import style
from sih.results.tables import Rows

CAPTION = (
    "Probability of picking the wrong lag against the number of transitions seen, for maximum "
    "likelihood, the paper's "
    "estimator and a single head of it. Points are measured, with standard errors over blocks of "
    "sequences; lines are "
    "computed without sampling (saddle point), and I is the exact exponent in nats per "
    "transition. No models are "
    "trained."
)

_LOOKS = {
    "ML": (style.RED, "o", "ML"),
    "estimator": (style.BLUE, "s", r"estimator, $\sum \tilde p$"),
    "single head": (style.GREEN, "^", r"one head, every $K$-th $\tilde p$"),
}


def draw(data: WrongLagRates) -> Figure:
    """Draw each rule's measured rate as points with error bars, and the prediction as a
    line.
    """
    with style.paper_figure(0.75 * style.PAGE, 3.0) as figure:
        ax = figure.subplots()
        floor = 1 / (data.config.blocks * data.config.sequences)
        for score in SCORES:
            colour, marker, name = _LOOKS[score]
            seen = data.measured[score] > 0
            n, mean = data.transitions[seen], data.measured[score][seen]
            error = data.measured_error[score][seen]
            label = f"{name}: $I={data.exponent[score]:.4f}$"
            low = torch.minimum(error, 0.9 * mean)
            ax.errorbar(
                n,
                mean,
                yerr=torch.stack([low, error]),
                color=colour,
                label=label,
                fmt=marker,
                ms=3,
                lw=0.7,
                capsize=1.5,
            )
            ax.plot(data.transitions, data.predicted[score], color=colour, lw=0.9)
        ax.set(yscale="log", ylim=(0.5 * floor, 1.2), xlim=(0, data.transitions[-1].item() + 2))
        ax.set(xlabel=r"transitions seen, $T - \hat{k}$", ylabel="probability of the wrong lag")
        lags = ", ".join(map(str, data.config.lags))
        ax.set_title(
            f"lags {{{lags}}}, {data.config.num_states} states; points measured, lines by saddle "
            "point"
        )
        ax.grid(True, which="major", lw=0.3, alpha=0.5)
        ax.legend(loc="lower left")
    return figure


def table(data: WrongLagRates) -> Rows:
    """Return one row per rule: the exact exponent, and the exponent fitted to the
    measurements.
    """
    rows = [["rule", "exponent", "fitted to the measured rate"]]
    for score in SCORES:
        fitted = f"{data.fitted[score]:.4f} ± {data.fitted_error[score]:.4f}"
        rows.append([score, f"{data.exponent[score]:.4f}", fitted])
    return rows
