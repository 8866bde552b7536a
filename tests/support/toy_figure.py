"""A figure and a statement are a file and a line: this file adds both, from data that is there.

It shows the data of `claim_histogram` once more, a bar for each true lag.
"""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure as Picture

from sih.claim import claim_histogram
from sih.claim.claim_histogram import ClaimMargins
from sih.results import style
from sih.results.figure import Figure
from sih.results.judging import Measured, Rule, Statement
from sih.results.tables import Rows

CAPTION = "The smallest gap of Claim 1 for each true lag, over matrices."


def draw(data: ClaimMargins) -> Picture:
    with style.paper_figure(0.5 * style.PAGE, 2.0) as figure:
        ax = figure.subplots()
        ax.bar([str(lag) for lag in data.lags], data.margins.amin(dim=0).numpy(), color=style.BLUE)
        ax.set(xlabel="true lag", ylabel="smallest gap")
    return figure


def table(data: ClaimMargins) -> Rows:
    rows = zip(data.lags, data.margins.amin(dim=0), strict=True)
    return [["true lag", "smallest gap"], *([str(lag), f"{gap:.4f}"] for lag, gap in rows)]


def gap_of_each_lag(data: ClaimMargins) -> list[Measured]:
    rows = zip(data.lags, data.margins.amin(dim=0), strict=True)
    return [Measured(float(gap), label=f"lag {lag}") for lag, gap in rows]


FIGURES: tuple[Figure[Any], ...] = (Figure("toy", claim_histogram.EXPERIMENT, __name__),)
STATEMENTS: tuple[Statement[Any], ...] = (
    Statement(
        "toy-gap",
        "Sec. 5.3, Claim 1",
        "The smallest gap is clear for every true lag.",
        claim_histogram.EXPERIMENT,
        gap_of_each_lag,
        Rule("at least", 0.04, 0.01),
        "smallest gap",
        "smallest gap over matrices, the worst true lag",
    ),
)
