"""Attention maps of trained and constructed transformers on one sequence: the paper's Fig. 5, App. B's and App. C's."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.analysis.head_matching import match_heads, total_variation
from sih.analysis.reference_circuit import reference_model, sequence_of_lag
from sih.models.offsets import attention_at
from sih.results.beside import FRESH_SEED
from sih.results.experiment import Experiment, Rows, Seeded, named_models
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "Attention of every head on one sequence of the task, its first positions (query down, key across; darker is more, "
    "relative to the query's largest). Rows: trained standard and disentangled transformers, by the name of the model "
    "(paper-...: trained as the paper trains, at the length in its name; the others with our recipe, at length 128), "
    "and the construction with as many second-layer heads. Heads of a layer come in the order of the construction's "
    "that they match best. TV is the total variation to the construction's map, the mean over the queries of the whole "
    "sequence (0 equal, 1 disjoint); 'lag k' the share of the third layer's attention on the token that the true lag "
    "copies."
)

Map = list[list[float]]
"""Attention, a row for each query."""
Layers = list[Float[Tensor, "1 _ query key"]]


@dataclass(frozen=True)
class MapsConfig(Seeded):
    models: tuple[str, ...] = (
        *("paper-3.5.7-length32", "paper-disentangled-3.5.7-length32"),
        *("standard-3.5.7", "disentangled-3.5.7"),
    )
    true_lag: int = 3
    shown: int = 48
    """Positions shown; the models see the whole sequence."""


@dataclass(frozen=True)
class MapRow:
    """Holds a model's maps, `maps[layer][head]` in the order of the construction's heads (None: no such head)."""

    name: str
    kind: str
    """Of model; of the construction's row, no kind."""
    maps: list[list[Map | None]]
    numbers: list[list[int | None]]
    """Which head of the model, counted from 1, each map is."""
    variation: list[list[float | None]]
    """Mean total variation to the construction's map, over the queries from `first` of the data to the last but one."""
    selected: float
    """Mean share of the last layer's attention on the token that the true lag copies, over the same queries."""


@dataclass(frozen=True)
class AttentionMaps:
    """Holds a row for each model, the construction's last. `missing` are models that cannot be shown, and why."""

    config: MapsConfig
    lags: tuple[int, ...]
    first: int
    rows: list[MapRow]
    missing: list[str]


def compute(config: MapsConfig, store: RunStore) -> AttentionMaps:
    """Run every model on one sequence. Without any of the models there is nothing to compare: a ValueError."""
    found, absent = store.finished(config.models)
    if not found:
        raise ValueError(f"none of the models of this figure is there: {', '.join(config.models)}")
    first_run, *_ = found.values()
    task = first_run.task.with_length(
        min(run.task.length for run in found.values())
    )  # what the shortest model can read
    reasons = dict.fromkeys(absent, "not shipped") | {
        name: _reason_against(run, task) for name, run in found.items()
    }
    missing = [f"{name}: {reason}" for name, reason in reasons.items() if reason]
    runs = [run for name, run in found.items() if not reasons[name]]
    tokens = sequence_of_lag(
        task, config.true_lag, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed)
    )
    built = reference_model(task, max((run.config.heads[1] for run in runs), default=None))
    first = built.circuit.first_exact_position
    wanted = [layer.double() for layer in built.trace(tokens).attention]
    rows = []
    with torch.no_grad():
        for run in runs:
            attention = [layer.double() for layer in run.model.trace(tokens).attention]
            rows.append(_row(run.name, run.config.model.kind, attention, wanted, first, config))
    rows.append(_row("constructed", "", wanted, wanted, first, config))
    return AttentionMaps(config, task.lags, first, rows, missing)


def _reason_against(run: Run, task: Task) -> str:
    """Say why a model cannot be compared on the task, nothing if it can."""
    if not run.task.same_chains(task):
        return "trained on another task"
    if run.model.first:
        return "has a start token, the construction none"
    layers = len(run.config.heads)
    return f"has {layers} layers, the construction 3" if layers != 3 else ""


def _row(
    name: str, kind: str, found: Layers, wanted: Layers, first: int, config: MapsConfig
) -> MapRow:
    maps: list[list[Map | None]] = []
    numbers: list[list[int | None]] = []
    variation: list[list[float | None]] = []
    for ours, theirs in zip(found, wanted, strict=True):
        order = match_heads(ours, theirs, first)
        maps.append(
            [
                None if h is None else _rounded(ours[0, h, : config.shown, : config.shown])
                for h in order
            ]
        )
        numbers.append([None if h is None else h + 1 for h in order])
        far = [
            None if h is None else total_variation(ours[0, h], theirs[0, j])
            for j, h in enumerate(order)
        ]
        variation.append([None if rows is None else rows[first:-1].mean().item() for rows in far])
    last = next(
        number for number in numbers[-1] if number is not None
    )  # the construction has one head there
    selected = (
        attention_at(found[-1][:, last - 1], [config.true_lag - 1])[0, first:-1, 0].mean().item()
    )
    return MapRow(name, kind, maps, numbers, variation, selected)


def _rounded(attention: Float[Tensor, "query key"]) -> Map:
    """Round a map to five decimals, more than a picture can show."""
    return [[round(value, 5) for value in row] for row in attention.tolist()]


def table(data: AttentionMaps) -> Rows:
    """Make one row for each model: total variation to the construction by head, and the share on the true lag."""
    built = data.rows[-1].variation
    heads = [
        f"{layer}.{head + 1}" for layer, found in enumerate(built, 1) for head in range(len(found))
    ]
    rows = [["model", *(f"TV {name}" for name in heads), f"on lag {data.config.true_lag}"]]
    for row in data.rows:
        cells = ["" if far is None else f"{far:.3f}" for layer in row.variation for far in layer]
        rows.append([row.name, *cells, f"{row.selected:.3f}"])
    return rows


def _experiments() -> Iterator[Experiment[MapsConfig, AttentionMaps]]:
    """Make an experiment for each figure of the paper: the main one, App. B's with fewer heads than lags, App. C's."""

    def experiment(name: str, config: MapsConfig) -> Experiment[MapsConfig, AttentionMaps]:
        return Experiment(
            f"attention_maps_{name}", CAPTION, config, AttentionMaps, compute, named_models, table
        )

    yield experiment("3.5.7_lag3", MapsConfig())
    for n in (1, 2, 3):
        models = f"paper-1.2.3.4.5-1.{n}.1-length32", f"standard-1.2.3.4.5-1.{n}.1"
        yield experiment(f"1.2.3.4.5_heads{n}", MapsConfig(models, true_lag=3, shown=64))
    for lags, true_lags in {"1.2": (2,), "1.2.3": (1, 2, 3), "1.3.4": (1, 3, 4)}.items():
        both = ("paper", "paper-disentangled") if lags == "1.2.3" else ("paper",)
        plain = [f"{kind}-{lags}-length32" for kind in both]
        for k in true_lags:
            yield experiment(
                f"{lags}_lag{k}",
                MapsConfig((*plain, f"standard-{lags}", f"disentangled-{lags}"), true_lag=k),
            )


EXPERIMENTS = tuple(_experiments())
