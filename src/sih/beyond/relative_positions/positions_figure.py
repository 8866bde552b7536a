"""Attention maps with absolute and relative positions, every model's KL, attention by
offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter

from sih.beyond.relative_positions.positions import OFFSETS, Positions, TrainedPositions
from sih.results import style
from sih.results.beside import heads_label
from sih.results.maps import draw_map
from sih.results.tables import Rows, braces

CAPTION = (
    "Absolute and relative positions after training as in the paper: Adam at a constant rate, no "
    "recipe. Left: attention on one sequence of the task (query down, key across, darker is more, "
    "relative to the query's largest), as in the paper's Fig. 5. The paper's construction needs "
    "one head per lag in layer 2. With relative positions one head in each layer suffices. Of the "
    "trained models "
    "with absolute positions the longest is shown, with relative positions the one of median KL. "
    "Rows "
    "are left white where a construction attends to its start token. Right, above: mean KL over "
    "that of "
    "maximum likelihood of every shipped model with this training, one row per kind of positions, "
    "heads, length and number of steps. Filled: it has found the circuit. Below: attention of the "
    "models that "
    "have found it with relative positions, by offset in the second half of a sequence; mean and "
    "range "
    "over models, and the construction (dashed)."
)

HEAD_COLOURS = {"1.1": style.BLUE, "2.1": style.ORANGE, "3.1": style.GREEN}
COLUMNS = ("1.1", "2.1", "2.2", "2.3", "3.1")


def draw(data: Positions) -> Figure:
    """Draw one row of maps per model, the KL of every model, and attention by offset."""
    height = 0.9 * len(data.rows) + 0.4
    with style.paper_figure(style.PAGE, height) as figure:
        parts: Any = figure.subfigures(1, 2, width_ratios=(4.5, 2.25))
        left, right = parts
        _draw_maps(left, data)
        above, below = right.subplots(2, 1)
        _draw_models(above, data.models)
        _draw_offsets(below, data)
    return figure


def _draw_maps(figure: Any, data: Positions) -> None:
    """Draw the maps; a layer's only head is in the middle of the layer's columns."""
    grid = figure.subplots(len(data.rows), len(COLUMNS), squeeze=False, sharex=True, sharey=True)
    for row, line in zip(data.rows, grid, strict=True):
        single = "2.2" not in row.maps
        line[0].set_ylabel(row.title, fontsize=7)
        for name, ax in zip(COLUMNS, line, strict=True):
            head = {"2.2": "2.1"}.get(name, name) if single else name
            if head not in row.maps or (single and name in ("2.1", "2.3")):
                ax.set_visible(False)
                continue
            draw_map(ax, row.maps[head])
            ax.set_title(head, fontsize=6, pad=2)
    figure.suptitle(f"lags {braces(data.config.lags)}, true lag {data.config.true_lag}", fontsize=8)


def groups(models: Sequence[TrainedPositions]) -> dict[str, list[TrainedPositions]]:
    """Return groups of models that differ in seed or matrix alone, by label, relative
    ones first.
    """
    found: dict[str, list[TrainedPositions]] = {}
    for one in sorted(models, key=lambda x: (not x.relative, x.length, x.heads, x.steps, x.seed)):
        sort = "relative" if one.relative else "absolute"
        steps = f"{one.steps // 1000}k" if one.steps % 1000 == 0 else f"{one.steps:,}"
        label = f"{sort} {heads_label(one.heads)}\nT = {one.length}, {steps} steps"
        found.setdefault(label, []).append(one)
    return found


def _draw_models(ax: Axes, models: Sequence[TrainedPositions]) -> None:
    every = groups(models)
    for place, group in enumerate(every.values()):
        for one in group:
            colour = style.GREEN if one.relative else style.RED
            face = colour if one.found else "white"
            ax.plot(one.kl_over_ml, place, "o", ms=4, mec=colour, mfc=face, mew=0.9, clip_on=False)
    ax.axvline(1, color=style.BLACK, lw=0.8)
    ax.set_xscale("log")
    ticks = [0.7, 1, 1.5, 2, 3, 5, 8]
    values = [one.kl_over_ml for one in models]
    low, high = min(*values, 0.75) / 1.06, max(*values, 1.4) * 1.1
    kept = [tick for tick in ticks if low <= tick <= high]
    ax.xaxis.set_major_locator(FixedLocator(kept))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(kept, [f"{tick:g}" for tick in kept])
    ax.set_xlim(low, high)
    ax.set_yticks(range(len(every)), list(every), fontsize=5.5)
    ax.set_ylim(len(every) - 0.4, -0.6)
    ax.set(xlabel="KL / KL of ML")
    ax.minorticks_off()


def _draw_offsets(ax: Axes, data: Positions) -> None:
    found = [one for one in data.models if one.relative and one.circuit]
    for head, colour in HEAD_COLOURS.items():
        written = data.constructed[head]
        ax.plot(written, ls=(0, (3, 2)), lw=0.8, color=colour)
        ax.plot([], [], "o-", ms=2.5, lw=1, color=colour, label=f"head {head}")
        if found:
            rows = list(zip(*(one.by_offset[head] for one in found), strict=True))
            mean = [sum(row) / len(row) for row in rows]
            ax.plot(mean, "o-", ms=2.5, lw=1, color=colour)
            ax.fill_between(
                range(len(rows)),
                [min(row) for row in rows],
                [max(row) for row in rows],
                color=colour,
                alpha=0.2,
                lw=0,
            )
    ax.set(xlabel="offset $i - j$", ylabel="attention", xticks=range(OFFSETS))
    ax.set_ylim(0, None)
    ax.legend(loc="upper right", handlelength=1.4)


def table(data: Positions) -> Rows:
    """Return one row per model: its KL over ML, whether it predicts and selects, its
    other heads.
    """
    rows = [
        [
            "model",
            "heads",
            "length",
            "steps",
            "KL/ML",
            "predicts",
            "selects",
            "1.1 with p̃",
            "2 to uniform",
        ]
    ]
    for group in groups(data.models).values():
        for one in group:
            numbers = [f"{x:.2f}" for x in (one.compares, one.from_uniform)]
            sizes = [heads_label(one.heads), str(one.length), f"{one.steps:,}"]
            words = ["yes" if x else "no" for x in (one.predicts, one.selects)]
            rows.append([one.name, *sizes, f"{one.kl_over_ml:.3f}", *words, *numbers])
    return rows
