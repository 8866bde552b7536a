"""The effect of depth and of second-layer heads on training: the paper's App. "Scaling
heads and layers".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.circuits import construct
from sih.heads import least_heads
from sih.predictors.averaged_kl import exact_bayes
from sih.results.beside import (
    Strengths,
    averaged_kl,
    by_seeds,
    circuit_law,
    heads_label,
    trained_law,
    yardsticks,
)
from sih.results.curves import CIRCUIT, PREDICTOR, Compared, Panel, Times, curve, times
from sih.results.experiment import Experiment, Seeded
from sih.results.models import (
    Models,
    TrainedModel,
    Training,
    described,
    shipped_models,
    training_of,
)
from sih.task import Task, sample
from sih.training.config import TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

LAGS, MORE_LAGS = (1, 2, 3), (1, 2, 3, 4, 5)

RECIPES: tuple[Training, ...] = ("SOAP", "Adam")


@dataclass(frozen=True)
class ScalingConfig(Seeded, Strengths):
    """The models of each row: all shipped ones that fit, or models by name or folder."""

    layers: tuple[str, ...] = ()
    """Standard models of every depth for `layers_lags`, trained with the presets of
    this package."""
    heads: tuple[str, ...] = ()
    """Standard models of three layers for `heads_lags`, trained with the presets of
    this package."""
    plain_heads: tuple[str, ...] = ()
    """The same models, trained as in the paper."""
    layers_lags: tuple[int, ...] = LAGS
    heads_lags: tuple[int, ...] = MORE_LAGS
    constructed_heads: tuple[int, ...] = (1, 2, 3, 4, 5)
    sequences: int = 512
    others: tuple[str, ...] = ()
    """Models for other lags that differ in heads. They are judged but not drawn."""


@dataclass(frozen=True, eq=False)
class ScalingRow(Panel):
    """The curves of a row. A curve of several seeds is their mean on every sequence.

    `over[model][other]` is the ratio of the model's KL to the other's, for every two
    models. For ML it is the ratio of the means alone, for shipped models the one of
    `sih.evaluate`.
    """

    models: dict[str, TrainedModel]
    over: dict[str, dict[str, Times]]


@dataclass(frozen=True, eq=False)
class ScalingCurves:
    """One row of models that differ in depth, and two rows of models and circuits that
    differ in heads.

    Those of `plain_heads` are trained as in the paper, those of `layers` and `heads`
    with the presets of this package. `others` has one row per training, other lags and
    length with models of different heads; none is drawn.
    """

    config: ScalingConfig
    layers: ScalingRow
    heads: ScalingRow
    plain_heads: ScalingRow
    others: tuple[ScalingRow, ...]
    missing: tuple[str, ...]

    @property
    def rows(self) -> list[ScalingRow]:
        """Return all rows, drawn or not."""
        return [self.layers, self.heads, self.plain_heads, *self.others]


def rows_of(config: ScalingConfig) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the models of each row that is drawn: those of the configuration, or all
    shipped ones.
    """
    three = [Models("standard", one, "needed", config.layers_lags) for one in RECIPES]
    deep = [Models("standard", one, lags=config.layers_lags, layers=(2, 4, 5)) for one in RECIPES]
    heads = [Models("standard", one, lags=config.heads_lags) for one in RECIPES]
    plain = Models("standard", "paper", lags=config.heads_lags)
    layers = config.layers or tuple(shipped_models(*three, *deep))
    return (
        layers,
        config.heads or tuple(shipped_models(*heads)),
        config.plain_heads or tuple(shipped_models(plain)),
    )


def others_of(config: ScalingConfig) -> tuple[str, ...]:
    """Return the models for other lags: those of the configuration, or all shipped ones
    that differ in heads alone.
    """
    shipped = shipped_models(
        *(Models("standard", one, usual_width=True) for one in ("paper", *RECIPES))
    )
    heads: dict[tuple[tuple[int, ...], int, Training], set[tuple[int, ...]]] = {}
    for one in shipped.values():
        heads.setdefault((one.lags, one.length, one.training), set()).add(one.heads)
    different = (
        name for name, one in shipped.items() if len(heads[one.lags, one.length, one.training]) > 1
    )
    return config.others or tuple(
        name for name in different if shipped[name].lags != config.heads_lags
    )


def reads(config: ScalingConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names of the models of all rows."""
    return tuple(
        dict.fromkeys(name for row in (*rows_of(config), others_of(config)) for name in row)
    )


def compute(config: ScalingConfig, store: RunStore) -> ScalingCurves:
    """Return the KL of each row's models on the same fresh sequences."""
    missing: list[str] = []

    def finished(names: tuple[str, ...]) -> list[Run]:
        found, absent = store.finished(names)
        missing.extend(absent)
        return sorted(
            found.values(),
            key=lambda run: (len(run.config.heads), run.config.heads, run.config.seed),
        )

    lags = (config.layers_lags, config.heads_lags, config.heads_lags)
    circuits = ((), config.constructed_heads, config.constructed_heads)
    each = zip(rows_of(config), lags, circuits, strict=True)
    layers, heads, plain_heads = [
        _row(config, of, finished(names), counts) for names, of, counts in each
    ]
    groups: dict[tuple[Task, Training], list[Run]] = {}
    for run in finished(others_of(config)):
        groups.setdefault((run.task, training_of(run.config)), []).append(run)
    others = [_row(config, task.lags, runs, ()) for (task, _), runs in groups.items()]
    return ScalingCurves(config, layers, heads, plain_heads, tuple(others), tuple(missing))


def _row(
    config: ScalingConfig, lags: tuple[int, ...], runs: list[Run], circuits: tuple[int, ...]
) -> ScalingRow:
    """Return a row: models, and circuits with the same numbers of second-layer heads.
    Seeds share a curve.
    """
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
        heads = min(count, least_heads(task.lags).heads)  # more heads than needed change nothing
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
) -> dict[str, Times]:
    """Return the ratio of a model to every other, and to ML on its larger evaluation if
    that is stored.
    """
    rows = each[run.name]
    found = {
        name: times(rows, other, max_lag, name) for name, other in each.items() if name != run.name
    }
    kept = run.evaluation
    mean = kept.kl_over_ml.pair() if kept else times(rows, ml, max_lag, "ML").mean
    return {**found, "ML": Times("ML", mean, {}, ())}


EXPERIMENT = Experiment("scaling", ScalingConfig(), ScalingCurves, compute, reads, shipped=True)
