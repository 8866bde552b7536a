"""Rates of the wrong lag against transitions seen: points measured, lines predicted."""

from matplotlib.figure import Figure

from sih.experiments.wrong_lag import WrongLagRates
from sih.figures import style
from sih.theory.rates import SCORES

_LOOKS = {"ML": (style.RED, "o"), "estimator": (style.BLUE, "s"), "single head": (style.GREEN, "^")}


_LABELS = {"ML": "ML", "estimator": r"estimator, $\sum \tilde p$", "single head": r"one head, every $K$-th $\tilde p$"}


def draw_wrong_lag(data: WrongLagRates) -> Figure:
    """Draw each rule's rate as points with error bars, and as predicted."""
    with style.paper_style():
        figure = Figure(figsize=(0.75 * style.PAGE, 3.0))
        ax = figure.subplots()
        floor = 1 / (data.config.blocks * data.config.sequences)
        for score in SCORES:
            colour, marker = _LOOKS[score]
            points = [
                (n, m, e)
                for n, m, e in zip(data.transitions, data.measured[score], data.measured_error[score], strict=True)
                if m > 0
            ]
            n, mean, error = zip(*points, strict=True)
            label = f"{_LABELS[score]}: $I={data.exponent[score]:.4f}$"
            low = [min(e, 0.9 * m) for m, e in zip(mean, error, strict=True)]
            ax.errorbar(n, mean, yerr=[low, error], color=colour, label=label, fmt=marker, ms=3, lw=0.7, capsize=1.5)
            ax.plot(data.transitions, data.predicted[score], color=colour, lw=0.9)
        ax.set_yscale("log")
        ax.set_ylim(0.5 * floor, 1.2)
        ax.set_xlim(0, data.transitions[-1] + 2)
        ax.set_xlabel(r"transitions seen, $T - \hat{k}$")
        ax.set_ylabel("probability of the wrong lag")
        lags = ", ".join(map(str, data.config.lags))
        ax.set_title(f"lags {{{lags}}}, {data.config.num_states} states; points measured, lines by saddle point")
        ax.grid(True, which="major", lw=0.3, alpha=0.5)
        ax.legend(loc="lower left")
    return figure
