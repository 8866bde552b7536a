"""Errors of circuits as points on a logarithmic axis, a column for each lag set."""

from matplotlib.figure import Figure

from sih.experiments.certificates import (
    BAYES,
    MASKS,
    POSITIONS,
    POSTERIOR,
    PRINTED,
    PRINTED_SINK,
    TWO_LAGS,
    CertificateErrors,
)
from sih.results import style
from sih.results.experiment import braces

_LOOKS = {
    MASKS: (style.BLUE, "o"),
    PRINTED_SINK: (style.SKY, "P"),
    PRINTED: (style.RED, "x"),
    POSITIONS: (style.GREEN, "s"),
    TWO_LAGS: (style.PURPLE, "D"),
    BAYES: (style.ORANGE, "^"),
    POSTERIOR: (style.BLACK, "v"),
}


def draw_certificates(data: CertificateErrors) -> Figure:
    """Draw the largest error of each circuit, a column for each lag set."""
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
                # An error of exactly 0 is shown at the smallest number that float64 tells from 1.
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
