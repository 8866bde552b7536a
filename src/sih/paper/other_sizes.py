"""Alphabets with other sizes than five: Sec. 6 reports no differences."""

from __future__ import annotations

from dataclasses import dataclass

from sih.attention.reference_circuit import reference_model
from sih.predictors.averaged_kl import exact_bayes
from sih.results.beside import (
    Strengths,
    averaged_kl,
    by_seeds,
    circuit_law,
    trained_law,
    yardsticks,
)
from sih.results.curves import CIRCUIT, PREDICTOR, Compared, Pair, Panel, curve
from sih.results.experiment import Experiment, Seeded
from sih.results.models import PAPER_LENGTH, Models, TrainedModel, described, shipped_models
from sih.task import Task, sample
from sih.training.config import TrainConfig
from sih.training.runs.evaluate import measure_on
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

CONSTRUCTION = "construction"


@dataclass(frozen=True)
class SizesConfig(Seeded, Strengths):
    """Numbers of states for which all shipped standard models are compared, or names of
    models.
    """

    states: tuple[int, ...] = (3, 5, 10)
    lags: tuple[int, ...] = (1, 2, 3)
    models: tuple[str, ...] = ()
    sequences: int = 256


@dataclass(frozen=True, eq=False)
class ModelWays:
    """A model's position between equal weights for all candidates (0) and ML (1), by
    window.

    Windows are named by the number of tokens seen, from 17 on (`sih.evaluate`).
    """

    model: TrainedModel
    ways: dict[str, Pair]


@dataclass(frozen=True, eq=False)
class SizePanel(Panel):
    """The curves for one number of states, on sequences of one matrix."""

    states: int
    models: dict[str, ModelWays]


@dataclass(frozen=True, eq=False)
class OtherSizes:
    """One panel per number of states."""

    config: SizesConfig
    panels: tuple[SizePanel, ...]
    missing: tuple[str, ...]


def chosen(config: SizesConfig) -> Models:
    """Return the models compared: those of three layers with the circuit's heads."""
    return Models(
        "standard",
        heads="needed",
        lags=config.lags,
        usual_width=True,
        longer_than=PAPER_LENGTH - 1,
        states=config.states,
    )


def reads(config: SizesConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models that fit."""
    return config.models or tuple(shipped_models(chosen(config)))


def compute(config: SizesConfig, store: RunStore) -> OtherSizes:
    """Return the KL of predictions on new sequences, for each number of states."""
    runs, missing = store.finished(reads(config, store))
    facts = described(runs.values())
    panels = []
    for states in config.states:
        of_size = [run for run in runs.values() if run.config.task.states == states]
        usual = TrainConfig(lags=config.lags, states=states).task.steady()
        panels.append(panel(config, of_size[0].task if of_size else usual, of_size, facts))
    return OtherSizes(config, tuple(panels), tuple(missing))


def panel(
    config: SizesConfig, task: Task, runs: list[Run], facts: dict[str, TrainedModel]
) -> SizePanel:
    """Return the panel of one task: the construction, models, BMA and ML, on the same
    sequences.
    """
    for run in runs:
        if run.task != task:
            raise ValueError(
                f"models of one size share length and matrix; {run.name} has others than "
                f"{runs[0].name}"
            )
    tokens = sample(task, config.sequences, rng=config.fresh_rng()).tokens
    exact = exact_bayes(tokens, task)
    laws = yardsticks(tokens, task)
    compared = dict.fromkeys(laws, Compared(PREDICTOR))
    circuit = reference_model(task)
    laws[CONSTRUCTION] = circuit_law(circuit, tokens, task)
    compared[CONSTRUCTION] = Compared(CIRCUIT, circuit.config.heads)
    kl = {label: averaged_kl(law, exact) for label, law in laws.items()}
    models = {}
    for found, group in by_seeds(runs).items():
        label = "trained as in the paper" if found.plain else "trained by preset auto"
        if label in compared:
            label += f", {', '.join(found.models)}"
        each = [averaged_kl(trained_law(run, tokens), exact) for run in group]
        compared[label], kl[label] = found, sum(each[1:], each[0]) / len(each)
        for run in group:
            evaluation = run.evaluation or measure_on(tokens, run.model, task)
            ways = {window: way.pair() for window, way in evaluation.ways.items()}
            models[run.name] = ModelWays(facts[run.name], ways)
    curves = {label: curve(rows, task.max_lag) for label, rows in kl.items()}
    return SizePanel(task.lags, compared, curves, task.num_states, models)


EXPERIMENT = Experiment("other_sizes", SizesConfig(), OtherSizes, compute, reads, shipped=True)
