"""KL with a switching lag: along sequences with one switch, and against the rate of
switching.
"""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.beyond.switching_lags.switching import (
    BAYES,
    FILTER,
    ONE_LAG,
    PAPER,
    SwitchingConfig,
    SwitchingLags,
)
from sih.results import style
from sih.results.style import Look, legend, not_shipped
from sih.results.tables import Rows, braces


def caption(config: SwitchingConfig) -> str:
    """Return the caption for the requested task."""
    return (
        f"Where the lag switches (lags {braces(config.lags)}, {config.num_states} states, T = "
        f"{config.length}). Left: "
        "KL divergence from the true next-token distribution along sequences with one switch of "
        "the lag, at token "
        f"{config.switch_at}, to one of the others. Right: mean KL past the largest lag against "
        "the probability of a switch per token, on one matrix, with one standard error over "
        "sequences. The filter is the exact "
        "Bayes predictor at the true rate (left: at 1/64). All others assume one lag: BMA, the "
        "paper's circuit, the "
        "Bayes-optimal circuit, and shipped models, trained by preset auto or harmonic (layers "
        "restricted to their roles or frozen at first) on this matrix with constant lags."
    )


_LOOKS: dict[str, Look] = {
    FILTER: (style.BLACK, "-", 1.4),
    ONE_LAG: (style.RED, "-", 2.2),
    BAYES: (style.ORANGE, (0, (3, 2)), 1.2),
    PAPER: (style.BLUE, "-", 1.2),
}

LOWEST = 1e-4
"""Lower end of the axis of KL along the sequence: below it, every predictor is sure of
the lag."""

_MODELS = ((style.GREEN, "-", 1.0), (style.PURPLE, "-", 1.0), (style.SKY, "-", 1.0))


def draw(data: SwitchingLags) -> Figure:
    """Draw both panels, on logarithmic axes of KL. Rate 0 is at the left edge."""
    models = [name for name in data.by_rate if name not in _LOOKS]
    looks = {**_LOOKS, **{name: _MODELS[n % len(_MODELS)] for n, name in enumerate(models)}}
    with style.paper_figure(style.PAGE, 3.0) as figure:
        around, rates = figure.subplots(1, 2)
        first = max(data.config.lags)
        for name in looks:
            colour, dashes, width = looks[name]
            positions = range(
                first + 1, len(data.along[name]) + 1
            )  # counted from 1, as in the paper
            around.plot(
                positions, data.along[name][first:], color=colour, ls=dashes, lw=width, label=name
            )
            mean, error = zip(*data.by_rate[name], strict=True)
            places = range(len(data.config.rates))
            rates.errorbar(
                places, mean, error, color=colour, ls=dashes, lw=width, marker="o", ms=2.5
            )
        at = data.config.switch_at
        around.axvline(at, color="0.6", lw=0.6, ls=(0, (2, 2)))
        around.set(
            yscale="log",
            ylim=(LOWEST, 1.5),
            xlabel="position",
            ylabel="KL to the true distribution (nats)",
        )
        around.set_title("one switch")
        around.text(at + 1, 1.2 * LOWEST, "switch", fontsize=6, va="bottom")
        rates.set(
            yscale="log", xlabel="probability of a switch per token", title="lag switches at random"
        )
        rates.set_xticks(list(places), [f"{rate:g}" for rate in data.config.rates])
        for ax in (around, rates):
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        legend(figure, looks, 3, not_shipped(data.missing))
    return figure


def table(data: SwitchingLags) -> Rows:
    """Return one row per predictor: mean KL at each rate."""
    rows = [["", *(f"rate {rate:g}" for rate in data.config.rates)]]
    return rows + [
        [name, *(f"{kl:.4f}±{error:.4f}" for kl, error in found)]
        for name, found in data.by_rate.items()
    ]
