"""KL along the sequence for trained models, with circuits, BMA and ML: the paper's Fig.
4.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.reference_circuit import reference_model
from sih.base.record import Size
from sih.base.stats import estimate
from sih.heads import least_heads
from sih.models.disentangled.dense import DisentangledTransformer
from sih.predictors.averaged_kl import exact_bayes
from sih.results.beside import (
    Strengths,
    averaged_kl,
    by_seeds,
    circuit_law,
    circuits_for,
    heads_label,
    trained_law,
    yardsticks,
)
from sih.results.curves import (
    CIRCUIT,
    PREDICTOR,
    Compared,
    Curve,
    Pair,
    Panel,
    Times,
    curve,
    times,
    windows,
)
from sih.results.experiment import Experiment, LagSets, Seeded, Several
from sih.results.models import (
    PAPER_LENGTH,
    Models,
    TrainedModel,
    described,
    matrix_in_words,
    shipped_models,
)
from sih.task import Task, sample
from sih.training.config import TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

CHOSEN = (Models(training="paper"), Models(heads="needed"), Models(heads="one"))
"""The models that are drawn and judged."""

Rate = Float[Tensor, "sequence time"]


@dataclass(frozen=True)
class TrainedConfig(Seeded, Strengths):
    """The models: all shipped ones that are `CHOSEN`, or models by name or folder.

    The numbers of sequences hold at length 128 and double at shorter lengths.
    Disentangled models take many times as long, so they predict only the first
    `disentangled_sequences`, or twice as many.
    """

    lag_sets: LagSets = (
        (1, 2, 3),
        (1, 3, 4),
        (1, 2, 3, 4, 5),
        (1, 3),
        (1, 2),
        (3, 5, 7),
    )
    models: tuple[str, ...] = ()
    sequences: Several = 640
    """Sequences of each task."""
    disentangled_sequences: Several = 192
    """Sequences for disentangled models."""
    circuit_sequences: Size = 2048
    """Sequences at length 128 for the circuits used as references: late in a sequence
    they rarely err."""


@dataclass(frozen=True, eq=False)
class ModelKL:
    """The KL of one model, and that of the paper's circuit with the same number of
    second-layer heads.

    `between` is the model's position between BMA (0) and ML (1) by window, for windows
    in which these differ.
    """

    model: TrainedModel
    kl: Curve
    circuit: Times
    between: dict[str, Pair]


@dataclass(frozen=True, eq=False)
class TrainedPanel(Panel):
    """The curves of one matrix. A curve of several seeds is their mean; `models` has
    each seed.
    """

    length: int
    matrix: str
    """The matrix, in words."""
    models: dict[str, ModelKL]


@dataclass(frozen=True, eq=False)
class TrainedCurves:
    """One panel per lag set and length (and per matrix if there are several), with the
    missing models.
    """

    config: TrainedConfig
    panels: tuple[TrainedPanel, ...]
    missing: tuple[str, ...]

    @property
    def models(self) -> list[ModelKL]:
        """Return the measurements of every model."""
        return [one for each in self.panels for one in each.models.values()]


def reads(config: TrainedConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models that are `CHOSEN`
    and have its lags.
    """
    chosen = shipped_models(*CHOSEN).items()
    return config.models or tuple(name for name, one in chosen if one.lags in config.lag_sets)


def compute(config: TrainedConfig, store: RunStore) -> TrainedCurves:
    """Return the curves of trained models and circuits, on one set of sequences per
    panel.
    """
    runs, missing = store.finished(reads(config, store))
    facts = described(runs.values())
    panels = []
    for lags in config.lag_sets:
        trained = [run for run in runs.values() if run.task.lags == lags]
        tasks = dict.fromkeys(
            [run.task for run in trained] or [TrainConfig(lags=lags).task.steady()]
        )
        for task in sorted(tasks, key=lambda task: -task.length):
            panels.append(_panel(config, task, [run for run in trained if run.task == task], facts))
    return TrainedCurves(config, tuple(panels), tuple(missing))


def label_of(compared: Compared, lags: tuple[int, ...]) -> str:
    """Return a label for trained models: their kind, their second-layer heads and their
    training.

    K heads are as many as the construction has, for any lags.
    """
    count = least_heads(lags).heads
    names: dict[tuple[int, ...], str] = {(1, 1, 1): "1 head", (1, count, 1): "K heads"}
    heads = names.get(compared.heads, heads_label(compared.heads))
    return f"trained {compared.kind}, {heads}, {compared.recipe}"


def _panel(
    config: TrainedConfig, task: Task, runs: list[Run], facts: dict[str, TrainedModel]
) -> TrainedPanel:
    """Return a panel: circuits and predictors on many sequences, and models on the
    first of them.
    """
    size = sequences_at(task.length, config.sequences)
    drawn = max(size, config.circuit_sequences) if task.length >= PAPER_LENGTH else size
    tokens = sample(task, drawn, rng=config.fresh_rng()).tokens
    exact = exact_bayes(tokens, task)
    circuits = circuits_for(task, lam=config.lam, beta=config.beta)
    laws = yardsticks(tokens, task)
    compared = dict.fromkeys(laws, Compared(PREDICTOR))
    laws |= {label: circuit_law(model, tokens, task) for label, model in circuits.items()}
    compared |= {label: Compared(CIRCUIT, model.config.heads) for label, model in circuits.items()}
    kl = {label: averaged_kl(law, exact) for label, law in laws.items()}
    references = {label: kl[label] for label in circuits}
    judged: dict[str, ModelKL] = {}
    for found, group in by_seeds(runs).items():
        label = label_of(found, task.lags)
        if label in compared:  # the same heads, but another width or training
            label += f", d={found.dim}" if found.dim else f", {', '.join(found.models)}"
        few = (
            sequences_at(task.length, config.disentangled_sequences)
            if found.kind == "disentangled"
            else size
        )
        each = [averaged_kl(trained_law(run, tokens[:few]), exact) for run in group]
        circuit, model = circuit_beside(task, found.heads, circuits)
        if circuit not in references:
            references[circuit] = averaged_kl(circuit_law(model, tokens, task), exact)
        for run, rows in zip(group, each, strict=True):
            beside = times(rows, references[circuit], task.max_lag, circuit)
            place = place_between(rows, kl["BMA"], kl["ML"], task.max_lag)
            judged[run.name] = ModelKL(facts[run.name], curve(rows, task.max_lag), beside, place)
        compared[label], kl[label] = found, torch.stack(each).mean(dim=0)
    curves = {label: curve(rows, task.max_lag) for label, rows in kl.items()}
    asked = runs[0].config.task if runs else TrainConfig(lags=task.lags).task
    return TrainedPanel(task.lags, compared, curves, task.length, matrix_in_words(asked), judged)


def sequences_at(length: int, sequences: int) -> int:
    """Return the number of sequences of a length: twice as many below the paper's
    length.
    """
    return sequences if length >= PAPER_LENGTH else 2 * sequences


def circuit_beside(
    task: Task, heads: tuple[int, ...], circuits: dict[str, DisentangledTransformer]
) -> tuple[str, DisentangledTransformer]:
    """Return the label and the model of the paper's circuit with a trained model's
    second-layer heads.
    """
    count = heads[1]
    if count >= circuits["construction"].config.heads[1]:
        return "construction", circuits["construction"]
    if count == 1:
        label = "two lags, 1 head" if len(task.lags) == 2 else "construction, 1 head"
        return label, circuits[label]
    return f"construction, {count} heads", reference_model(task, count)


def place_between(rows: Rate, bma: Rate, ml: Rate, max_lag: int) -> dict[str, Pair]:
    """Return a model's position between BMA (0) and ML (1), by window, with the error
    of all three.

    Windows in which BMA and ML differ by at most four standard errors are omitted.
    """
    found = {}
    for first, last in windows(max_lag, rows.shape[1] - 1):
        model, best, likely = (
            each[: len(rows), first - 1 : last].mean(dim=1) for each in (rows, bma, ml)
        )
        apart = estimate(likely - best)
        if apart.mean > 4 * apart.error:
            place = ((model - best).mean() / apart.mean).item()
            error = estimate(model - best - place * (likely - best)).error / apart.mean
            found[f"{first}-{last}"] = (place, error.item())
    return found


EXPERIMENT = Experiment("trained", TrainedConfig(), TrainedCurves, compute, reads, shipped=True)
