"""The expectations of Claim 1, a panel for each true lag."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.claim.claim_expectations import ExpectationBars
from sih.claim.lag_panels import panels_of
from sih.results import style

CAPTION = (
    "Expected normalised transition probability of every lag r, a panel for each true lag (red), for the paper's "
    "twelve lags; exact expectations, means over matrices with Dirichlet(1) rows, bars one standard deviation over "
    "matrices. Dashes: one over the number of lags. No models are trained."
)


def draw(data: ExpectationBars) -> Figure:
    """Draw a panel for each true lag. Its own bar is the highest where the claim holds."""
    count = len(data.lags)
    places = range(count)
    with style.paper_style():
        figure, panels = panels_of(data.lags, "lag $r$", "$E_r$")
        for j, ax in enumerate(panels):
            colours = [style.RED if i == j else style.SKY for i in places]
            bars = {"elinewidth": 0.6, "capsize": 1.2, "capthick": 0.6}
            ax.bar(
                places,
                data.mean[j].numpy(),
                yerr=data.spread[j].numpy(),
                color=colours,
                width=0.8,
                error_kw=bars,
            )
            ax.axhline(1 / count, color=style.BLACK, lw=0.5, ls=(0, (3, 2)))
            ax.set_xticks(places, [str(lag) for lag in data.lags], fontsize=5 if count > 8 else 7)
    return figure
