"""Attention after training with absolute and with relative positions, with the
constructions.

Models are chosen by what they are, among those that ship: with relative positions all that are
trained as the paper trains, with one head in each of three layers; with absolute positions the
standard models of the same lags that are trained so.

Few runs ship, and not by chance. How often training finds the circuit is counted over every run
that was measured: `runs.csv`, written by `research/relative_rates.py`.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.head_reading import HeadReading, exact_selection, read_head
from sih.attention.reference_circuit import sequence_of_lag
from sih.circuits import construct
from sih.models.base import Model
from sih.models.relative.relative_transformer import RelativeShape
from sih.results.experiment import Experiment, Seeded
from sih.results.models import Models, shipped_models, trained_plainly
from sih.task import Batch, Task, sample
from sih.task.matrices import random_transition_matrix
from sih.training.runs.evaluate import measure
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

KIND = "relative"
ONE_HEAD_EACH = (1, 1, 1)
AS_THE_PAPER_TRAINS = {
    "heads": "1 1 1",
    "batch": "256",
    "offsets": "both",
    "reach": "",
    "start": "False",
}
"""Cells of a run's row: the paper's batches, a vector for every offset, no start token."""
OFFSETS = 10
"""Attention is shown at offsets 0 .. 9."""


@dataclass(frozen=True)
class PositionsConfig(Seeded):
    lags: tuple[int, ...] = (1, 2, 3)
    true_lag: int = 2
    """The lag of the sequence whose attention is shown."""
    shown: int = 32
    """Positions shown; the models read the whole sequence."""
    sequences: int = 64
    """Sequences on which heads are measured."""
    evaluated: int = 1024
    """Sequences for a model without an evaluation in its folder."""
    models: tuple[str, ...] = ()
    """Names of models. Default: all shipped models that fit."""


@dataclass(frozen=True)
class TrainedPositions:
    """Quality of a trained model, and whether its heads are those of the circuit."""

    name: str
    relative: bool
    heads: tuple[int, ...]
    length: int
    steps: int
    seed: int
    kl_over_ml: float
    predicts: bool
    """Whether it covers 0.9 of the way to maximum likelihood in every window from 17
    tokens on."""
    compares: float
    """Correlation of the first head's attention with the normalised probabilities."""
    from_uniform: float
    """Total variation of the second layer's attention from uniform, for the nearest
    head."""
    selects: bool
    """Whether a head of the last layer selects the token to copy."""
    by_offset: dict[str, tuple[float, ...]]
    """Attention of each head at the first offsets, in the second half."""

    @property
    def found(self) -> bool:
        """Return whether it predicts as the circuit does, and selects."""
        return self.predicts and self.selects

    @property
    def circuit(self) -> bool:
        """Return whether its other heads are also those of the relative circuit."""
        return self.found and self.from_uniform <= 0.25 and abs(self.compares) >= 0.3


@dataclass(frozen=True)
class MeasuredRun:
    """A run with relative positions, trained as the paper trains, whether it ships or not."""

    length: int
    law: str
    """The distribution that its matrix is drawn from."""
    matrix: int
    seed: int
    kl_over_ml: float
    circuit: bool
    """Its predictions come 0.9 of the way to maximum likelihood in every window from 17 tokens on,
    its last layer selects, and its first compares tokens."""


@dataclass(frozen=True, eq=False)
class PositionMaps:
    """The maps of a model on one sequence, by head; nan in rows of the start token."""

    title: str
    name: str
    """Name of the trained model, "" for a construction."""
    maps: dict[str, Float[Tensor, "query key"]]


@dataclass(frozen=True, eq=False)
class Positions:
    """Maps row by row, and every model that was measured."""

    config: PositionsConfig
    rows: tuple[PositionMaps, ...]
    models: tuple[TrainedPositions, ...]
    constructed: dict[str, tuple[float, ...]]
    """Attention of the relative construction by offset, as that of trained models."""
    runs: tuple[MeasuredRun, ...] = ()
    """Every run on these lags that was measured."""


def reads(config: PositionsConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models that fit."""
    if config.models:
        return config.models
    absolute = shipped_models(Models("standard", "paper", lags=config.lags, usual_width=True))
    shipped = RunStore()
    relative = (name for name in shipped.names() if _fits(shipped.run(name), config))
    return (*absolute, *relative)


def _fits(run: Run, config: PositionsConfig) -> bool:
    """Return whether a run has relative positions, one head per layer, and the paper's
    training.
    """
    shape, task = run.config.model, run.config.task
    return (
        isinstance(shape, RelativeShape)
        and set(shape.offsets) == {"both"}
        and (run.config.heads, task.lags) == (ONE_HEAD_EACH, config.lags)
        and task.is_paper_task
        and trained_plainly(run.config)
    )


def compute(config: PositionsConfig, store: RunStore) -> Positions:
    """Return the measurements of every model, with maps of one of each sort and of its
    construction.
    """
    runs = list(store.finished(reads(config, store))[0].values())
    models = tuple(read_run(run, config) for run in runs)
    by_name = {run.name: run for run in runs}
    relative = [one for one in models if one.relative]
    shown = by_name[_middle(relative)] if relative else None
    task = shown.task if shown else _usual_task(config)
    absolute = [one for one in models if not one.relative and one.length >= task.length]
    rows = []
    if absolute:
        longest = max(absolute, key=lambda one: (one.length, sum(one.heads), -one.seed))
        run = by_name[longest.name]
        theirs = run.task.with_length(task.length)
        rows.append(maps("absolute,\nconstructed", construct(theirs), theirs, config))
        rows.append(maps("absolute,\ntrained", run.model, theirs, config, run.name))
    circuit = construct(task, kind="relative")
    rows.append(maps("relative,\nconstructed", circuit, task, config))
    if shown:
        rows.append(maps("relative,\ntrained", shown.model, task, config, shown.name))
    written = first_offsets(read_heads(circuit, task, config))
    return Positions(config, tuple(rows), models, written, measured_runs(config.lags))


def measured_runs(lags: tuple[int, ...]) -> tuple[MeasuredRun, ...]:
    """Return every measured run on these lags that differs from the paper's training in its positions alone."""
    text = resources.files(__package__).joinpath("runs.csv").read_text(encoding="utf-8")
    wanted = {"lags": " ".join(map(str, lags)), **AS_THE_PAPER_TRAINS}
    rows = csv.DictReader(text.splitlines())
    return tuple(_measured(row) for row in rows if wanted.items() <= row.items())


def _measured(row: dict[str, str]) -> MeasuredRun:
    compares, selects = abs(float(row["correlation"])) >= 0.3, float(row["selected"]) >= 0.8
    return MeasuredRun(
        length=int(row["length"]),
        law=row["law"],
        matrix=int(row["matrix"]),
        seed=int(row["seed"]),
        kl_over_ml=float(row["kl_over_ml"]),
        circuit=row["found"] == "yes" and compares and selects,
    )


def _usual_task(config: PositionsConfig) -> Task:
    """Return the task that models with relative positions are trained on, if none ships."""
    return Task(random_transition_matrix(5, rng=0, law="uniform"), config.lags, 64)


def _middle(models: Sequence[TrainedPositions]) -> str:
    """Return the name of the model of median KL over ML, the better of two in the
    middle.
    """
    middle = statistics.median_low(one.kl_over_ml for one in models)
    return next(one.name for one in models if one.kl_over_ml == middle)


def read_run(run: Run, config: PositionsConfig) -> TrainedPositions:
    """Return a trained model's quality and heads."""
    evaluation = run.evaluation or measure(
        run.model, run.task, least=config.evaluated, most=config.evaluated
    )
    readings = read_heads(run.model, run.task, config)
    layers = {n: [x for x in readings if x.name.startswith(f"{n}.")] for n in (1, 2)}
    trained = run.config
    return TrainedPositions(
        name=run.name,
        relative=trained.model.kind == KIND,
        heads=trained.heads,
        length=run.task.length,
        steps=trained.optimiser.steps,
        seed=trained.seed,
        kl_over_ml=evaluation.kl_over_ml.mean,
        predicts=evaluation.found,
        compares=max((x.correlation for x in layers[1]), key=abs),
        from_uniform=min(x.from_uniform for x in layers[2]),
        selects=any(x.selective for x in readings if x.last),
        by_offset=first_offsets(readings),
    )


@torch.no_grad()
def read_heads(model: Model, task: Task, config: PositionsConfig) -> list[HeadReading]:
    """Return measurements of every head of a model on sequences of its task."""
    batch: Batch = sample(task, config.sequences, rng=config.fresh_rng())
    trace = model.trace(batch.tokens)
    exact, layers = exact_selection(batch, task), len(trace.attention)
    return [
        read_head(f"{layer}.{head}", whole, batch, task, last=layer == layers, exact=exact)
        for layer, each in enumerate(trace.attention, start=1)
        for head, whole in enumerate(each[:, :, model.first :].unbind(dim=1), start=1)
    ]


def first_offsets(readings: Sequence[HeadReading]) -> dict[str, tuple[float, ...]]:
    """Return each head's attention at the offsets 0 to `OFFSETS - 1`, by the head's name."""
    return {head.name: head.offsets[:OFFSETS] for head in readings}


@torch.no_grad()
def maps(
    title: str, model: Model, task: Task, config: PositionsConfig, name: str = ""
) -> PositionMaps:
    """Return the maps of a model's heads on the first positions of a sequence of the
    true lag.
    """
    tokens: Int[Tensor, "1 time"] = sequence_of_lag(task, config.true_lag, rng=config.fresh_rng())
    first, found = model.first, {}
    for layer, each in enumerate(model.trace(tokens).attention, start=1):
        for head, whole in enumerate(each[0].double(), start=1):
            shown = whole[first:, first:].clone()
            if first:
                shown[whole[first:, 0] > 0.5] = math.nan
            found[f"{layer}.{head}"] = shown[: config.shown, : config.shown].clone()
    return PositionMaps(title, name, found)


EXPERIMENT = Experiment("positions", PositionsConfig(), Positions, compute, reads, shipped=True)
