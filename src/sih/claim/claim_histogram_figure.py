"""Histogram of the gaps of Claim 1, with the gaps of one matrix, exact and sampled."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.claim.claim_histogram import ClaimConfig, ClaimMargins, printed_check
from sih.claim.lag_panels import is_papers, matrices_in_words
from sih.claim.sampled import sampled_gaps
from sih.results import style

BINS = 30
PAPERS_RANGE, PAPERS_TICKS = (0.0155, 0.0395), (0.020, 0.025, 0.030, 0.035)
"""The paper's axis has only these ticks, so it ends between 0.015 and 0.040."""
PAPERS_MOST = 1250
"""The end of the paper's axis of counts."""


def caption(config: ClaimConfig) -> str:
    """Return the caption for the requested matrices."""
    kept = sampled_gaps(printed_check(config))
    sampled = (
        ""
        if kept is None
        else " The line is the paper's method, sampling as in App. E: the same first "
        f"{len(kept):,} matrices, "
        "a thousand sequences of length 1000 for each lag."
    )
    return (
        "Left: gap of Claim 1, the expected normalised probability of the true lag minus the "
        "largest of the others, "
        f"for every matrix ({matrices_in_words(config)}) and every true lag of "
        f"{len(config.lags)}. The expectations "
        f"are exact (to {config.tolerance:g}).{sampled} The axes have the paper's ranges, and are "
        "cut: numbers at the "
        "edges say how many exact gaps lie beyond. Right: the first matrix, exactly and sampled "
        "with "
        f"{config.sampled_sequences:,} sequences of each lag; bars are upper bounds on two "
        "standard errors. Sampled gaps are lower on average, since the largest of several noisy "
        "means is too large. No models "
        "are trained."
    )


def draw(data: ClaimMargins) -> Figure:
    """Draw the histogram, and beside it the gaps of the first matrix by true lag."""
    wide = data.first is not None
    with style.paper_figure(style.PAGE if wide else 0.62 * style.PAGE, 2.5) as figure:
        axes = figure.subplots(1, 2 if wide else 1, squeeze=False)[0]
        _draw_histogram(axes[0], data)
        if wide:
            _draw_first(axes[1], data)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def _draw_histogram(ax: Axes, data: ClaimMargins) -> None:
    gaps = data.margins.flatten()
    ends = (gaps.min().item(), gaps.max().item())
    ax.hist(gaps.numpy(), bins=BINS, range=ends, color=style.BLUE, lw=0, label="exact")
    if data.sampled is not None:
        look: dict[str, Any] = {"histtype": "step", "color": style.ORANGE, "lw": 1.0}
        share = len(data.margins) / len(data.sampled)
        scaled = "" if share == 1 else f", scaled to {len(data.margins):,}"
        many = f"sampled as the paper prints it, {len(data.sampled):,} matrices{scaled}"
        gaps = data.sampled.flatten()
        weights = [share] * len(gaps)
        ax.hist(gaps.numpy(), bins=BINS, range=ends, weights=weights, label=many, **look)
    if is_papers(data.lags) and data.num_states == 10 and _mostly_within(data):
        _papers_axes(ax, data)
    else:
        ax.axvline(0, color=style.BLACK, lw=0.8)
        ax.set_xlim(left=min(0.0, 1.1 * ends[0]))
    many = "1 matrix" if len(data.margins) == 1 else f"{len(data.margins):,} matrices"
    ax.set_title(f"{many}, {data.num_states} states, {len(data.lags)} lags up to {data.lags[-1]}")
    ax.set(xlabel=r"$E_k - \max_{r\neq k} E_r$", ylabel="matrices × true lags")
    words: dict[str, Any] = {"transform": ax.transAxes, "fontsize": 7, "ha": "right", "va": "top"}
    ax.text(0.99, 0.98, f"smallest exact gap: {ends[0]:.4f}", **words)


def _mostly_within(data: ClaimMargins) -> bool:
    """Return whether nearly all gaps are within the paper's axis."""
    low, high = PAPERS_RANGE
    inside = (data.margins > low) & (data.margins < high)
    return inside.double().mean().item() > 0.9


def _papers_axes(ax: Axes, data: ClaimMargins) -> None:
    """Set the paper's axes, and write at their ends how many gaps lie outside."""
    low, high = PAPERS_RANGE
    ax.set(xlim=PAPERS_RANGE, xticks=PAPERS_TICKS, ylim=(0, PAPERS_MOST))
    below, above = int((data.margins < low).sum()), int((data.margins > high).sum())
    words: dict[str, Any] = {"transform": ax.transAxes, "fontsize": 6, "va": "bottom"}
    ax.text(0.01, 0.1, f"← {below}", ha="left", **words)
    ax.text(0.99, 0.1, f"{above} →", ha="right", **words)


def _draw_first(ax: Axes, data: ClaimMargins) -> None:
    assert data.first is not None
    places = range(len(data.lags))
    ax.plot(places, data.margins[0], color=style.BLUE, ls="", marker="o", ms=5, label="exact")
    bars: dict[str, Any] = {"elinewidth": 0.8, "capsize": 2, "ls": "", "marker": ".", "ms": 4}
    error = (2 * data.first.error).numpy()
    ax.errorbar(places, data.first.gaps.numpy(), error, color=style.ORANGE, label="sampled", **bars)
    ax.set_xticks(places, [str(lag) for lag in data.lags])
    ax.set(title="the first matrix", xlabel="true lag $k$", ylim=(0, None))
