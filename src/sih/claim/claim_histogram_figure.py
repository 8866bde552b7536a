"""A histogram of the gaps of Claim 1."""

from __future__ import annotations

from matplotlib.figure import Figure

from sih.claim.claim_histogram import ClaimMargins
from sih.results import style

CAPTION = (
    "Gap of Claim 1, the expected normalised probability of the true lag minus the largest of the others, for every "
    "matrix (10 states, Dirichlet(1) rows) and every true lag of the paper's twelve. The expectations are exact (to "
    "1e-10), not sampled: there are no error bars. No models are trained."
)


def draw(data: ClaimMargins) -> Figure:
    """Draw a histogram of the gaps, with zero and the smallest marked."""
    margins = data.margins
    least = margins.min().item()
    with style.paper_figure(0.62 * style.PAGE, 2.4) as figure:
        ax = figure.subplots()
        ax.hist(margins.flatten().numpy(), bins=60, color=style.BLUE, lw=0)
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.axvline(least, color=style.RED, lw=0.9, ls=(0, (3, 2)), label=f"smallest: {least:.4f}")
        ax.set_xlim(left=min(0.0, 1.1 * least))
        ax.margins(x=0.02)
        many = "1 matrix" if len(margins) == 1 else f"{len(margins)} matrices"
        ax.set_title(
            f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}"
        )
        ax.set(xlabel=r"$E_k - \max_{r\neq k} E_r$", ylabel="matrices × true lags")
        ax.legend(loc="upper right")
    return figure
