"""How depth and second-layer heads change what is learned: the paper's App. "Scaling heads and layers"."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.averaged_kl import exact_bayes
from sih.construction import construct, least_heads
from sih.results.beside import (
    Strengths,
    averaged_kl,
    by_seeds,
    circuit_law,
    heads_label,
    trained_law,
    yardsticks,
)
from sih.results.curves import CIRCUIT, PREDICTOR, Compared, Pair, Panel, curve, times
from sih.results.experiment import Experiment, Seeded
from sih.results.models import (
    Models,
    TrainedModel,
    Training,
    described,
    shipped_models,
    training_of,
)
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import sample
from sih.training.config import TrainConfig

LAGS, MORE_LAGS = (1, 2, 3), (1, 2, 3, 4, 5)

RECIPES: tuple[Training, ...] = ("SOAP", "Adam")


@dataclass(frozen=True)
class ScalingConfig(Seeded, Strengths):
    """Asks for all shipped models of each row, or for models by name or folder."""

    layers: tuple[str, ...] = ()
    """Standard models of every depth for `layers_lags`, trained with our recipes."""
    heads: tuple[str, ...] = ()
    """Standard models of three layers for `heads_lags`, trained with our recipes."""
    plain_heads: tuple[str, ...] = ()
    """The same, trained as in the paper."""
    layers_lags: tuple[int, ...] = LAGS
    heads_lags: tuple[int, ...] = MORE_LAGS
    constructed_heads: tuple[int, ...] = (1, 2, 3, 4, 5)
    sequences: int = 512


@dataclass(frozen=True, eq=False)
class ScalingRow(Panel):
    """Holds the curves of a row. One of several seeds is their mean on every sequence.

    `over[model][other]` is how many times the other's mean KL the model's is, for every two models; and for ML, of
    shipped models as `sih.evaluate` has it.
    """

    models: dict[str, TrainedModel]
    over: dict[str, dict[str, Pair]]


@dataclass(frozen=True, eq=False)
class ScalingCurves:
    """Holds a row of models that differ in depth, and two of models and circuits that differ in heads.

    Those of `plain_heads` are trained as in the paper, the others with our recipes.
    """

    config: ScalingConfig
    layers: ScalingRow
    heads: ScalingRow
    plain_heads: ScalingRow
    missing: tuple[str, ...]


def rows_of(config: ScalingConfig) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Name the models of each row: those of the configuration, or all shipped ones."""
    three = [Models("standard", one, "needed", config.layers_lags) for one in RECIPES]
    others = [Models("standard", one, lags=config.layers_lags, layers=(2, 4, 5)) for one in RECIPES]
    heads = [Models("standard", one, lags=config.heads_lags) for one in RECIPES]
    plain = Models("standard", "paper", lags=config.heads_lags)
    layers = config.layers or tuple(shipped_models(*three, *others))
    return (
        layers,
        config.heads or tuple(shipped_models(*heads)),
        config.plain_heads or tuple(shipped_models(plain)),
    )


def reads(config: ScalingConfig, store: RunStore) -> tuple[str, ...]:
    """Name the models of all rows."""
    return tuple(dict.fromkeys(name for row in rows_of(config) for name in row))


def compute(config: ScalingConfig, store: RunStore) -> ScalingCurves:
    """Run the models of each row on the same fresh sequences."""
    missing: list[str] = []
    lags = (config.layers_lags, config.heads_lags, config.heads_lags)
    circuits = ((), config.constructed_heads, config.constructed_heads)
    rows = []
    for names, of, counts in zip(rows_of(config), lags, circuits, strict=True):
        found, absent = store.finished(names)
        missing.extend(absent)
        runs = sorted(
            found.values(),
            key=lambda run: (len(run.config.heads), run.config.heads, run.config.seed),
        )
        rows.append(_row(config, of, runs, counts))
    layers, heads, plain_heads = rows
    return ScalingCurves(config, layers, heads, plain_heads, tuple(missing))


def _row(
    config: ScalingConfig, lags: tuple[int, ...], runs: list[Run], circuits: tuple[int, ...]
) -> ScalingRow:
    """Measure the models, and circuits with so many second-layer heads. Curves are of models that differ by seed."""
    task = runs[0].task if runs else TrainConfig(lags=lags).task.steady()
    for run in runs:
        if run.task.lags != lags or run.task != task:
            raise ValueError(
                f"models of one row share lags {lags}, length and matrix; {run.name} has others"
            )
    batch = sample(task, config.sequences, rng=config.fresh_rng())
    exact = exact_bayes(batch.tokens, task)
    kl = {label: averaged_kl(law, exact) for label, law in yardsticks(batch.tokens, task).items()}
    compared = dict.fromkeys(kl, Compared(PREDICTOR))
    each = {run.name: averaged_kl(trained_law(run, batch.tokens), exact) for run in runs}
    for found, group in by_seeds(runs).items():
        label = heads_label(found.heads, found.dim)
        if training_of(group[0].config) == "Adam":
            label += ", Adam"
        rows = torch.stack([each[run.name] for run in group])
        compared[label], kl[label] = found, rows.mean(dim=0)
    over = {run.name: _over(run, each, kl["ML"], task.max_lag) for run in runs}
    for count in circuits:
        label = f"construction, {count}"
        heads = min(count, least_heads(task.lags).heads)  # more than lose nothing change nothing
        model = construct(task, heads=heads, third="position", lam=config.lam, beta=config.beta)
        compared[label] = Compared(CIRCUIT, (1, count, 1))
        kl[label] = averaged_kl(circuit_law(model, batch.tokens, task), exact)
    curves = {label: curve(rows, task.max_lag) for label, rows in kl.items()}
    return ScalingRow(lags, compared, curves, described(runs), over)


def _over(
    run: Run,
    each: dict[str, Float[Tensor, "sequence time"]],
    ml: Float[Tensor, "sequence time"],
    max_lag: int,
) -> dict[str, Pair]:
    """Compare a model with every other, and with ML on the many sequences of its evaluation if that is kept."""
    rows = each[run.name]
    found = {
        name: times(rows, other, max_lag, name).mean
        for name, other in each.items()
        if name != run.name
    }
    kept = run.evaluation
    return {**found, "ML": kept.kl_over_ml.pair() if kept else times(rows, ml, max_lag, "ML").mean}


EXPERIMENT = Experiment("scaling", ScalingConfig(), ScalingCurves, compute, reads, shipped=True)
