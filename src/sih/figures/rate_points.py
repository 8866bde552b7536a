"""Rates of the wrong lag against transitions seen: points measured, lines predicted."""

from matplotlib.figure import Figure

from sih.experiments.wrong_lag import WrongLagRates
from sih.figures import style
from sih.theory.rates import SCORES

_LOOKS = {
    "ML": (style.RED, "o", "ML"),
    "estimator": (style.BLUE, "s", r"estimator, $\sum \tilde p$"),
    "single head": (style.GREEN, "^", r"one head, every $K$-th $\tilde p$"),
}


def draw_wrong_lag(data: WrongLagRates) -> Figure:
    """Draw each rule's rate as points with error bars, and as predicted."""
    with style.paper_figure(0.75 * style.PAGE, 3.0) as figure:
        ax = figure.subplots()
        floor = 1 / (data.config.blocks * data.config.sequences)
        for score in SCORES:
            colour, marker, name = _LOOKS[score]
            points = zip(data.transitions, data.measured[score], data.measured_error[score], strict=True)
            n, mean, error = zip(*(point for point in points if point[1] > 0), strict=True)
            label = f"{name}: $I={data.exponent[score]:.4f}$"
            low = [min(e, 0.9 * m) for m, e in zip(mean, error, strict=True)]
            ax.errorbar(n, mean, yerr=[low, error], color=colour, label=label, fmt=marker, ms=3, lw=0.7, capsize=1.5)
            ax.plot(data.transitions, data.predicted[score], color=colour, lw=0.9)
        ax.set(yscale="log", ylim=(0.5 * floor, 1.2), xlim=(0, data.transitions[-1] + 2))
        ax.set(xlabel=r"transitions seen, $T - \hat{k}$", ylabel="probability of the wrong lag")
        lags = ", ".join(map(str, data.config.lags))
        ax.set_title(f"lags {{{lags}}}, {data.config.num_states} states; points measured, lines by saddle point")
        ax.grid(True, which="major", lw=0.3, alpha=0.5)
        ax.legend(loc="lower left")
    return figure
