"""A verification as points: the error of each value of the pass, with the tolerance for
rounding.
"""

from matplotlib.figure import Figure

from sih.circuits.verification import Verification
from sih.results import style

SMALLEST = 2.0**-56
"""Place at which an error of exactly 0 is drawn."""


def draw_verification(data: Verification) -> Figure:
    """Draw one point per value compared, on a logarithmic axis, and its tolerance."""
    with style.paper_figure(0.75 * style.PAGE, 0.16 * len(data.comparisons) + 0.9) as figure:
        ax = figure.subplots()
        for y, found in enumerate(data.comparisons):
            limit = data.tolerance_of(found)
            within = found.error <= limit
            ax.plot(
                [limit, limit],
                [y - 0.4, y + 0.4],
                color=style.RED,
                lw=1.2,
                label="tolerance" if y == 0 else None,
            )
            ax.plot(
                max(found.error, SMALLEST),
                y,
                "o" if within else "X",
                ms=4,
                color=style.BLUE if within else style.RED,
            )
        if data.posterior_error is not None and data.bound is not None:
            last = len(data.comparisons) - 0.5
            ax.axvline(
                data.bound,
                color=style.GREEN,
                lw=0.8,
                ls=(0, (3, 1)),
                label="certified bound on the posterior",
            )
            ax.plot(
                max(data.posterior_error, SMALLEST),
                last,
                "D",
                ms=4,
                color=style.GREEN,
                label="posterior's error",
            )
        ax.set_yticks(
            range(len(data.comparisons)), [found.site for found in data.comparisons], fontsize=6
        )
        ax.set(xscale="log", xlabel="largest error", ylim=(len(data.comparisons), -0.7))
        ax.grid(True, axis="x", which="major", lw=0.3, alpha=0.5)
        figure.legend(loc="outside lower center", ncols=3)
        told = "the weights hold the circuit" if data.ok else "the weights do not hold the circuit"
        ax.set_title(f"{told}, {sum(data.sequences.values())} sequences, {data.dtype}")
    return figure
