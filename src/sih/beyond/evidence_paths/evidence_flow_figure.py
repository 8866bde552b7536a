"""Bars of the paths of the evidence to the last layer's scores."""

from matplotlib.figure import Figure

from sih.beyond.evidence_paths.score_shares import EvidenceFlow
from sih.results import style

MOST = 16
"""Largest number of paths drawn."""


def draw_evidence_flow(data: EvidenceFlow) -> Figure:
    """Draw each path's share of the evidence, with two standard errors, the largest on
    top.
    """
    parts = sorted(data.shares, key=lambda part: -abs(data.shares[part]))[:MOST]
    with style.paper_figure(0.85 * style.PAGE, 0.19 * len(parts) + 0.7) as figure:
        ax = figure.subplots()
        errors = [2 * data.errors[part] for part in parts]
        ax.barh(
            range(len(parts)),
            [data.shares[part] for part in parts],
            xerr=errors,
            color=style.BLUE,
            height=0.7,
        )
        names = [part if isinstance(part, str) else f"{part[0]}  with  {part[1]}" for part in parts]
        ax.set_yticks(range(len(parts)), names, fontsize=6)
        ax.set_ylim(len(parts) - 0.5, -0.5)
        ax.axvline(0, color=style.BLACK, lw=0.5)
        left = len(data.shares) - len(parts)
        ax.set_xlabel(
            "share of the evidence in the last layer's scores"
            + f" ({left} smaller ones left out)" * (left > 0)
        )
    return figure
