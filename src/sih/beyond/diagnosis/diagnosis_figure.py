"""A diagnosis as a picture: the attention of each head by offset, and the KL along the
sequence.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sih.beyond.diagnosis.diagnosis import Diagnosis
from sih.results import style
from sih.results.maps import COLOURS
from sih.results.tables import braces

_LOOKS = {
    "model": (style.BLUE, "-"),
    "bma": (style.BLACK, "-"),
    "ml": (style.RED, (0, (4, 1))),
    "stationary": (style.PURPLE, (0, (1, 1))),
}
FLOOR = 1e-5
"""KL in nats below which differences are not drawn."""
_LABELS = {"model": "model", "bma": "BMA", "ml": "ML", "stationary": "stationary distribution"}


def draw_diagnosis(data: Diagnosis) -> Figure:
    """Draw each head's attention by offset on the left, and KL by position on the
    right, as far as given.
    """
    shown = [part for part, there in (("heads", data.heads), ("law", data.law.kl)) if there]
    with style.paper_figure(style.PAGE, max(2.2, 0.9 + 0.24 * len(data.heads))) as figure:
        axes = figure.subplots(1, len(shown), squeeze=False)[0]
        for ax, part in zip(axes, shown, strict=True):
            _draw_heads(ax, data) if part == "heads" else _draw_law(ax, data)
        named = data.labels.partition(" ")[0]
        figure.suptitle(f"{named} {braces(data.lags)}: {data.law.words or 'attention'}", fontsize=8)
    return figure


def _draw_heads(ax: Axes, data: Diagnosis) -> None:
    offsets = min(len(data.heads[0].offsets), max(12, 2 * data.lags[-1] + 2))
    shares = [head.offsets[:offsets] for head in data.heads]
    relative = [[share / max(*row, 1e-9) for share in row] for row in shares]
    ax.imshow(relative, cmap=COLOURS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    for y, row in enumerate(shares):
        for x, share in enumerate(row):
            if share >= 0.005:
                text, colour = (
                    f"{share:.2f}",
                    "white" if share > 0.6 * max(row) else "black",
                )
                ax.text(x, y, text, ha="center", va="center", fontsize=5, color=colour)
    ax.set_yticks(range(len(shares)), [head.name for head in data.heads])
    ax.set(ylabel="head", title="attention by offset, second half")
    ax.set_xlabel("offset of the key (colour: relative to the row's largest)")


def _draw_law(ax: Axes, data: Diagnosis) -> None:
    first = data.lags[-1]
    for name, values in data.law.by_position.items():
        shown = [
            (i + 1, value)
            for i, value in enumerate(values)
            if i >= first and 0 < value < float("inf")
        ]
        if shown:
            colour, line = _LOOKS[name]
            ax.plot(*zip(*shown, strict=True), color=colour, linestyle=line, label=_LABELS[name])
    ax.set_yscale("log")
    ax.set_ylim(bottom=max(FLOOR, ax.get_ylim()[0]))
    style.doubling_positions(ax, first + 1, len(next(iter(data.law.by_position.values()))))
    ax.set(xlabel="tokens seen", ylabel=f"KL to {data.reference}")
    if ax.lines:
        ax.legend()
