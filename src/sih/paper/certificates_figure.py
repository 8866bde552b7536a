"""Errors of circuits as points on a logarithmic axis, one column per lag set."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.paper.certificates import (
    BAYES,
    MASKS,
    POSITIONS,
    POSTERIOR,
    PRINTED,
    PRINTED_LATE,
    PRINTED_SINK,
    TWO_LAGS,
    CertificateErrors,
)
from sih.results import style
from sih.results.tables import Rows, braces

CAPTION = (
    "Largest difference between what constructed weights compute (attention of every layer, stored evidence, "
    "prediction) and the closed form of their circuit, in float64, over matrices with Dirichlet(1) rows, sequences of "
    "the task and adversarial ones, at every position that is claimed. For the Bayes-optimal circuit also the largest "
    "difference of an attention weight from the exact posterior of the lag, and for Prop. 1 from the weights of Eq. "
    "(3), at every position past the largest lag: of the circuit with a sink at the first position, and of the weights "
    "as Sec. 5.1 has them, without one. No models are trained."
)

_LOOKS = {
    MASKS: (style.BLUE, "o"),
    PRINTED_SINK: (style.SKY, "P"),
    PRINTED: (style.RED, "x"),
    POSITIONS: (style.GREEN, "s"),
    TWO_LAGS: (style.PURPLE, "D"),
    BAYES: (style.ORANGE, "^"),
    POSTERIOR: (style.BLACK, "v"),
}


def draw(data: CertificateErrors) -> Figure:
    """Draw the largest error of each circuit, one column per lag set."""
    with style.paper_figure(0.85 * style.PAGE, 2.6) as figure:
        ax = figure.subplots()
        for shift, (name, (colour, marker)) in enumerate(_LOOKS.items()):
            points = [
                (i + 0.1 * (shift - 3), error[name])
                for i, error in enumerate(data.error)
                if name in error
            ]
            if points:
                x, y = zip(*points, strict=True)
                # An error of exactly 0 is drawn at the machine epsilon of float64.
                ax.plot(
                    x, [max(value, 2.0**-52) for value in y], marker, color=colour, ms=4, label=name
                )
        names = [
            f"{braces(lags)}\n{n} heads"
            for lags, n in zip(data.config.lag_sets, data.heads, strict=True)
        ]
        ax.set_xticks(range(len(names)), names, fontsize=6)
        ax.set(yscale="log", ylabel="largest error")
        ax.grid(True, axis="y", which="major", lw=0.3, alpha=0.5)
        figure.legend(loc="outside lower center", ncols=3)
    return figure


def table(data: CertificateErrors) -> Rows:
    """Return one row per circuit: its largest error for each lag set."""
    rows = [["circuit", *(braces(lags) for lags in data.config.lag_sets)]]
    for name in (MASKS, PRINTED_SINK, PRINTED, PRINTED_LATE, POSITIONS, TWO_LAGS, BAYES, POSTERIOR):
        rows.append(
            [name, *(f"{error[name]:.1e}" if name in error else "" for error in data.error)]
        )
    return rows
