"""Attention of trained and constructed models on one sequence: Fig. 5, Apps. B, C.

As printed: one map per layer, of the first 48 positions at length 128. Of several
second-layer heads, the figure shows the one nearest to the construction's first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.head_matching import total_variation
from sih.attention.reference_circuit import reference_model, sequence_of_lag
from sih.models.base import Model
from sih.models.offsets import attention_at
from sih.results.experiment import Experiment, Seeded, named_models
from sih.results.models import training_of
from sih.task import Task
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

Layers = Sequence[Float[Tensor, "head query key"]]
Tokens = Int[Tensor, "batch time"]
CONSTRUCTED = "construction"


@dataclass(frozen=True)
class MapsConfig(Seeded):
    """Models to compare on one sequence of a lag."""

    models: tuple[str, ...] = (
        "paper-3.5.7-length32",
        "paper-disentangled-3.5.7-length32",
        "standard-3.5.7-1.1.1",
        "disentangled-3.5.7",
    )
    true_lag: int = 3
    shown: int = 48
    """Largest number of positions shown; models read the whole sequence, up to their
    length."""


@dataclass(frozen=True, eq=False)
class ModelMaps:
    """A model's map of each layer: that of the head nearest to the construction's
    first.
    """

    name: str
    kind: str
    """Kind of model; empty for the construction."""
    as_in_the_paper: bool
    """Whether the model is trained as in the paper."""
    length: int
    """Tokens that the model reads."""
    heads: tuple[int, ...]
    maps: tuple[Float[Tensor, "query key"], ...]
    """The maps without the last position that the model reads: no token follows it."""
    numbers: tuple[int, ...]
    """The number of each map's head in its layer, from 1."""
    variation: tuple[float, ...]
    """Mean total variation from the construction's map, over the queries compared."""
    selected: float
    """Mean share of the last layer's attention on the true lag's candidate."""


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """The maps of models trained as in the paper, of the construction, then of other
    models.
    """

    config: MapsConfig
    lags: tuple[int, ...]
    first: int
    """The first query compared. The last one compared is a model's last but one."""
    rows: tuple[ModelMaps, ...]
    missing: tuple[str, ...]
    """Models that cannot be shown, with the reason."""

    @property
    def construction(self) -> ModelMaps:
        """Return the construction's maps."""
        return next(row for row in self.rows if row.name == CONSTRUCTED)


def compute(config: MapsConfig, store: RunStore) -> AttentionMaps:
    """Return the maps of the construction and of every model, on one sequence of the
    task.
    """
    found, absent = store.finished(config.models)
    if not found:
        raise ValueError(f"none of the models of this figure is there: {', '.join(config.models)}")
    task = longest_task(list(found.values()))
    reasons = dict.fromkeys(absent, "not shipped")
    reasons |= {name: reason_against(run, task) for name, run in found.items()}
    runs = [run for name, run in found.items() if not reasons[name]]
    tokens = sequence_of_lag(task, config.true_lag, rng=config.fresh_rng())
    construction = reference_model(task, 1 if len(task.lags) == 2 else None)
    first = construction.circuit.first_exact_position
    wanted = attention_of(construction, tokens)
    built = maps(CONSTRUCTED, wanted, wanted, first, config)
    papers: list[ModelMaps] = []
    ours: list[ModelMaps] = []
    for run in runs:
        plain = training_of(run.config) == "paper"
        attention = attention_of(run.model, tokens[:, : run.task.length])
        row = maps(run.name, attention, wanted, first, config, run.config.model.kind, plain)
        (papers if plain else ours).append(row)
    missing = tuple(f"{name}: {reason}" for name, reason in reasons.items() if reason)
    return AttentionMaps(config, task.lags, first, (*papers, built, *ours), missing)


def longest_task(runs: Sequence[Run]) -> Task:
    """Return the first model's task, at the length of the longest model."""
    task: Task = runs[0].task
    return task.with_length(max(run.task.length for run in runs))


def reason_against(run: Run, task: Task) -> str:
    """Return the reason why a model cannot be compared on the task, or ""."""
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
    name: str,
    found: Layers,
    wanted: Layers,
    first: int,
    config: MapsConfig,
    kind: str = "",
    as_in_the_paper: bool = False,
) -> ModelMaps:
    """Return a model's maps: in each layer that of the head nearest to the
    construction's first.

    A shorter model is compared on the positions that it reads, since attention is
    causal.
    """
    length = found[0].shape[-1]
    compared, shown = slice(first, length - 1), min(config.shown, length - 1)
    chosen, variation = [], []
    for ours, theirs in zip(found, wanted, strict=True):
        far = total_variation(ours, theirs[0, :length, :length])[:, compared].mean(dim=1)
        chosen.append(int(far.argmin()))
        variation.append(far[chosen[-1]].item())
    layers = [layer[head] for layer, head in zip(found, chosen, strict=True)]
    copied = attention_at(layers[-1], [config.true_lag - 1])[compared, 0]
    return ModelMaps(
        name,
        kind,
        as_in_the_paper,
        length,
        heads=tuple(len(layer) for layer in found),
        maps=tuple(layer[:shown, :shown].clone() for layer in layers),
        numbers=tuple(head + 1 for head in chosen),
        variation=tuple(variation),
        selected=copied.mean().item(),
    )


def experiments() -> Iterator[Experiment[MapsConfig, AttentionMaps]]:
    """Yield the experiments of the main figure, of App. B with fewer heads than lags,
    and of App. C.
    """

    def experiment(name: str, config: MapsConfig) -> Experiment[MapsConfig, AttentionMaps]:
        return Experiment(f"attention_maps_{name}", config, AttentionMaps, compute, named_models)

    yield experiment("3.5.7_lag3", MapsConfig())
    for n in (1, 2, 3):
        pair = (f"paper-1.2.3.4.5-1.{n}.1-length32", f"standard-1.2.3.4.5-1.{n}.1")
        yield experiment(f"1.2.3.4.5_heads{n}", MapsConfig(pair, true_lag=1))
    each = {
        "1.2": (("paper-1.2-length32",), "standard-1.2"),
        "1.2.3": (
            (
                "paper-1.2.3",
                "paper-1.2.3-1.1.1-length32",
                "paper-disentangled-1.2.3-length32",
            ),
            "standard-1.2.3-1.1.1",
        ),
        "1.3.4": (("paper-1.3.4-length32",), "standard-1.3.4-1.1.1"),
    }
    true_lags = {"1.2": (2,), "1.2.3": (1, 2, 3), "1.3.4": (1, 3, 4)}
    for lags, (plain, one_head) in each.items():
        for lag in true_lags[lags]:
            models = (*plain, one_head, f"disentangled-{lags}")
            yield experiment(f"{lags}_lag{lag}", MapsConfig(models, true_lag=lag))


EXPERIMENTS = tuple(experiments())
