"""Attention of trained and constructed models on one sequence: Fig. 5, Apps. B, C."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.head_matching import match_heads, total_variation
from sih.attention.reference_circuit import reference_model, sequence_of_lag
from sih.models.base import Model
from sih.models.offsets import attention_at
from sih.results.experiment import Experiment, Seeded, named_models
from sih.task import Task
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

Layers = Sequence[Float[Tensor, "head query key"]]
Tokens = Int[Tensor, "batch time"]


@dataclass(frozen=True)
class MapsConfig(Seeded):
    """Models side by side on one sequence of a lag."""

    models: tuple[str, ...] = (
        "paper-3.5.7-length32",
        "paper-disentangled-3.5.7-length32",
        "standard-3.5.7",
        "disentangled-3.5.7",
    )
    true_lag: int = 3
    shown: int = 48
    """Positions shown; the models see the whole sequence."""


@dataclass(frozen=True, eq=False)
class ModelMaps:
    """A model's maps of each layer, its heads in the order of the construction's.

    Where no head of the model is left for one of the construction's, numbers are nan.
    """

    name: str
    kind: str
    """Of model; of the construction, no kind."""
    maps: tuple[Float[Tensor, "_ query key"], ...]
    numbers: tuple[Int[Tensor, " _"], ...]
    """Which head of the model each map is, counted from 1; 0 for none."""
    variation: tuple[Float[Tensor, " _"], ...]
    """Mean total variation to the construction's map, over the queries compared."""
    selected: float
    """Mean share of the last layer's attention on what the true lag copies."""


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The maps of each model, the construction's last."""

    config: MapsConfig
    lags: tuple[int, ...]
    first: int
    """The first query compared. The last one compared is the last but one."""
    rows: tuple[ModelMaps, ...]
    missing: tuple[str, ...]
    """Models that cannot be shown, and why."""


def compute(config: MapsConfig, store: RunStore) -> AttentionMaps:
    """Run every model, and the construction, on one sequence of the task they share."""
    found, absent = store.finished(config.models)
    if not found:
        raise ValueError(f"none of the models of this figure is there: {', '.join(config.models)}")
    task = shared_task(list(found.values()))
    reasons = dict.fromkeys(absent, "not shipped")
    reasons |= {name: reason_against(run, task) for name, run in found.items()}
    runs = [run for name, run in found.items() if not reasons[name]]
    tokens = sequence_of_lag(task, config.true_lag, rng=config.fresh_rng())
    most_heads = max((run.config.heads[1] for run in runs), default=None)
    construction = reference_model(task, most_heads)
    first = construction.circuit.first_exact_position
    wanted = attention_of(construction, tokens)
    rows = []
    for run in runs:
        attention = attention_of(run.model, tokens)
        rows.append(maps(run.name, run.config.model.kind, attention, wanted, first, config))
    rows.append(maps("constructed", "", wanted, wanted, first, config))
    missing = tuple(f"{name}: {reason}" for name, reason in reasons.items() if reason)
    return AttentionMaps(config, task.lags, first, tuple(rows), missing)


def shared_task(runs: Sequence[Run]) -> Task:
    """Return the first model's task at the length that the shortest model can read."""
    task: Task = runs[0].task
    return task.with_length(min(run.task.length for run in runs))


def reason_against(run: Run, task: Task) -> str:
    """Return why a model cannot be compared on the task, nothing if it can."""
    if not run.task.same_chains(task):
        return "trained on another task"
    if run.model.first:
        return "has a start token, the construction none"
    layers = len(run.config.heads)
    return f"has {layers} layers, the construction 3" if layers != 3 else ""


@torch.no_grad()
def attention_of(model: Model, tokens: Tokens) -> Layers:
    """Return a model's attention on the one sequence, layer by layer."""
    return [layer[0].double() for layer in model.trace(tokens).attention]


def maps(
    name: str, kind: str, found: Layers, wanted: Layers, first: int, config: MapsConfig
) -> ModelMaps:
    """Return a model's maps, its heads put in the order of the construction's."""
    orders = [
        match_heads(ours[None], theirs[None], first)
        for ours, theirs in zip(found, wanted, strict=True)
    ]
    ordered = [in_order(ours, order) for ours, order in zip(found, orders, strict=True)]
    compared = slice(first, -1)
    variation = [
        total_variation(ours, theirs)[:, compared].mean(dim=1)
        for ours, theirs in zip(ordered, wanted, strict=True)
    ]
    chosen = next(head for head in orders[-1] if head is not None)
    copied = attention_at(found[-1][chosen], [config.true_lag - 1])[compared, 0]
    return ModelMaps(
        name,
        kind,
        maps=tuple(layer[:, : config.shown, : config.shown].clone() for layer in ordered),
        numbers=tuple(head_numbers(order) for order in orders),
        variation=tuple(variation),
        selected=copied.mean().item(),
    )


def in_order(
    layer: Float[Tensor, "head query key"], order: Sequence[int | None]
) -> Float[Tensor, "other query key"]:
    """Return the heads in this order, nan where there is none."""
    nobody = torch.full_like(layer[0], math.nan)
    return torch.stack([nobody if head is None else layer[head] for head in order])


def head_numbers(order: Sequence[int | None]) -> Int[Tensor, " head"]:
    """Return the numbers of heads from 1, 0 for none."""
    return torch.tensor([0 if head is None else head + 1 for head in order])


def experiments() -> Iterator[Experiment[MapsConfig, AttentionMaps]]:
    """Yield the main figure's, App. B's with fewer heads than lags, and App. C's."""

    def experiment(name: str, config: MapsConfig) -> Experiment[MapsConfig, AttentionMaps]:
        return Experiment(f"attention_maps_{name}", config, AttentionMaps, compute, named_models)

    yield experiment("3.5.7_lag3", MapsConfig())
    for n in (1, 2, 3):
        models = (f"paper-1.2.3.4.5-1.{n}.1-length32", f"standard-1.2.3.4.5-1.{n}.1")
        yield experiment(f"1.2.3.4.5_heads{n}", MapsConfig(models, true_lag=3, shown=64))
    for lags, true_lags in {"1.2": (2,), "1.2.3": (1, 2, 3), "1.3.4": (1, 3, 4)}.items():
        kinds = ("paper", "paper-disentangled") if lags == "1.2.3" else ("paper",)
        plain = [f"{kind}-{lags}-length32" for kind in kinds]
        every = (*plain, f"standard-{lags}", f"disentangled-{lags}")
        for lag in true_lags:
            yield experiment(f"{lags}_lag{lag}", MapsConfig(every, true_lag=lag))


EXPERIMENTS = tuple(experiments())
