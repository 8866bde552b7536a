"""Attention maps of trained and constructed transformers on one sequence: the paper's Fig. 5, App. B's and App. C's.

A row a model, a column a head. The heads of a layer come in the order of the construction's that they are nearest to,
in total variation; each map says how near, over the rows where the construction equals its closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from sih.analysis.head_matching import match_heads, total_variation
from sih.analysis.reference_circuit import reference_model, same_chains, sequence_of_lag
from sih.artifacts.record_json import Saved
from sih.experiments.compared import FRESH_SEED
from sih.figures import style
from sih.figures.heat_maps import Map, draw_map, draw_scale
from sih.figures.kl_curves import braces
from sih.models.offsets import attention_at
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Task

NAME = "attention_maps"
CAPTION = (
    "Attention of every head on one sequence of the task, its first positions (query down, key across; darker is more, "
    "relative to the query's largest). Rows: trained standard and disentangled transformers, by the name of the model, "
    "and the construction with as many second-layer heads. Heads of a layer come in the order of the construction's "
    "that they match best. TV is the total variation to the construction's map, the mean over the queries of the whole "
    "sequence (0 equal, 1 disjoint); 'lag k' the share of the third layer's attention on the token that the true lag "
    "copies."
)


@dataclass(frozen=True)
class Config:
    models: tuple[str, ...] = ("standard-3.5.7", "disentangled-3.5.7")
    true_lag: int = 3
    shown: int = 48
    """Positions shown; the models see the whole sequence."""
    seed: int = 0


def _figures() -> dict[str, Config]:
    """One entry a figure of the paper, in its order."""
    both = {"3.5.7": (3,), "1.2": (2,), "1.2.3": (1, 2, 3), "1.3.4": (1, 3, 4)}
    pairs = {
        f"{NAME}_{lags}_lag{k}": Config((f"standard-{lags}", f"disentangled-{lags}"), true_lag=k)
        for lags, true_lags in both.items()
        for k in true_lags
    }
    fewer = {
        f"{NAME}_1.2.3.4.5_heads{h}": Config((f"standard-1.2.3.4.5-1.{h}.1",), true_lag=3, shown=64) for h in (1, 2, 3)
    }
    main = f"{NAME}_3.5.7_lag3"
    return {main: pairs.pop(main), **fewer, **pairs}


FIGURES: dict[str, Config] = _figures()
"""The figures of the paper by name: the main one, App. B's with fewer heads than lags, App. C's."""


@dataclass(frozen=True)
class Row:
    """A model's maps, `maps[layer][head]` in the order of the construction's heads (None where it has no such head)."""

    label: str
    maps: list[list[Map | None]]
    numbers: list[list[int | None]]
    """Which head of the model, counted from 1, each map is."""
    variation: list[list[float | None]]
    """Mean total variation to the construction's map, over the queries from `Maps.first` to the last but one."""
    selected: float
    """Mean share of the last layer's attention on the token that the true lag copies, over the same queries."""


@dataclass(frozen=True)
class Maps(Saved):
    """The last row is the construction. Models of `config` that were not to be had, and why, are `missing`."""

    config: Config
    lags: tuple[int, ...]
    first: int
    rows: list[Row]
    missing: list[str]


def config() -> Config:
    return FIGURES[f"{NAME}_3.5.7_lag3"]


def models(config: Config, store: RunStore) -> tuple[str, ...]:
    return config.models


def compute(config: Config, store: RunStore) -> Maps:
    """One sequence, the same for every row. Without any of the models there is nothing to compare: a ValueError."""
    found_runs, absent = store.finished(config.models)
    runs = list(found_runs.values())
    missing = [f"{name}: not shipped" for name in absent]
    if not runs:
        raise ValueError(f"none of the models of this figure is there: {', '.join(config.models)}")
    task = _shared_task(runs)
    for run in list(runs):
        reason = _reason_against(run, task)
        if reason:
            missing.append(f"{run.name}: {reason}")
            runs.remove(run)
    tokens = sequence_of_lag(task, config.true_lag, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
    built = reference_model(task, max((run.config.heads[1] for run in runs), default=None))
    first = built.circuit.first_exact_position
    wanted = [layer.double() for layer in built.trace(tokens).attention]
    rows = []
    with torch.no_grad():
        for run in runs:
            found = [layer.double() for layer in run.model.trace(tokens).attention]
            rows.append(_row(run.name, found, wanted, first, config))
    return Maps(config, task.lags, first, [*rows, _row("constructed", wanted, wanted, first, config)], missing)


def _shared_task(runs: list[Run]) -> Task:
    """The first model's, as long as the shortest model can read."""
    return runs[0].task.with_length(min(run.task.length for run in runs))


def _reason_against(run: Run, task: Task) -> str:
    """Why a model cannot be compared on the task; empty if it can."""
    if not same_chains(run.task, task):
        return "trained on another task"
    layers = len(run.config.heads)
    return f"has {layers} layers, the construction 3" if layers != 3 else ""


def _row(
    label: str,
    found: list[Float[Tensor, "1 _ query key"]],
    wanted: list[Float[Tensor, "1 _ query key"]],
    first: int,
    config: Config,
) -> Row:
    maps: list[list[Map | None]] = []
    numbers: list[list[int | None]] = []
    variation: list[list[float | None]] = []
    for ours, theirs in zip(found, wanted, strict=True):
        order = match_heads(ours, theirs, first)
        maps.append([None if h is None else _rounded(ours[0, h, : config.shown, : config.shown]) for h in order])
        numbers.append([None if h is None else h + 1 for h in order])
        far = [
            None if h is None else total_variation(ours[0, h], theirs[0, j])[first:-1].mean().item()
            for j, h in enumerate(order)
        ]
        variation.append(far)
    last = next(number for number in numbers[-1] if number is not None)  # the construction has one head there
    selected = attention_at(found[-1][:, last - 1], [config.true_lag - 1])[0, first:-1, 0].mean().item()
    return Row(label, maps, numbers, variation, selected)


def _rounded(attention: Float[Tensor, "query key"]) -> Map:
    """Five decimals: more than a picture can show."""
    return [[round(value, 5) for value in row] for row in attention.tolist()]


def draw(data: Maps) -> Figure:
    places = [(layer, head) for layer, heads in enumerate(data.rows[-1].maps) for head in range(len(heads))]
    side = min(1.6, (style.PAGE - 0.95) / len(places))
    with style.paper_style():
        figure = Figure(figsize=(side * len(places) + 0.95, side * len(data.rows) + 0.6))
        axes = figure.subplots(len(data.rows), len(places), squeeze=False, sharex=True, sharey=True)
        image = None
        for row, line in zip(data.rows, axes, strict=True):
            for (layer, head), ax in zip(places, line, strict=True):
                attention = row.maps[layer][head]
                if attention is None:
                    ax.set_visible(False)
                    continue
                image = draw_map(ax, attention, _note(data, row, layer, head))
            line[0].set_ylabel(_label(row.label), fontsize=7)
        for (layer, head), ax in zip(places, axes[0], strict=True):
            many = len(data.rows[-1].maps[layer]) > 1
            ax.set_title(f"layer {layer + 1}" + (f", head {head + 1}" if many else ""), fontsize=7, pad=3)
        for ax in axes[-1]:
            ax.set_xlabel("key", fontsize=6, labelpad=1)
        draw_scale(figure, image, axes.flatten().tolist())
        title = f"lags {braces(data.lags)}, true lag {data.config.true_lag}"
        if data.missing:
            title += f"   (without {'; '.join(data.missing)})"
        figure.suptitle(title, fontsize=8)
    return figure


def _note(data: Maps, row: Row, layer: int, head: int) -> str:
    """How near a trained map is to the construction's, and what the last layer selects."""
    far = row.variation[layer][head]
    lines = [] if row is data.rows[-1] or far is None else [f"TV {far:.2f}".replace("0.", ".")]
    if layer == len(row.maps) - 1:
        lines.append(f"lag {data.config.true_lag}: {row.selected:.2f}".replace("0.", "."))
    return "\n".join(lines)


def _label(name: str) -> str:
    """A model's name in two lines: its kind, then what tells it from others."""
    kind, _, rest = name.partition("-")
    return f"{kind}\n{rest}" if rest else kind


def table(data: Maps) -> list[list[str]]:
    """A row a model: total variation to the construction by head, and the share on the true lag."""
    built = data.rows[-1].variation
    heads = [f"{layer}.{head + 1}" for layer, found in enumerate(built, 1) for head in range(len(found))]
    rows = [["model", *(f"TV {name}" for name in heads), f"on lag {data.config.true_lag}"]]
    for row in data.rows:
        cells = ["" if far is None else f"{far:.3f}" for layer in row.variation for far in layer]
        rows.append([row.label, *cells, f"{row.selected:.3f}"])
    return rows
