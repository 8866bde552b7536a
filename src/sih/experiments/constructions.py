"""KL to the truth along the sequence for circuits written by hand, run as weights, beside BMA and ML.

The constructed half of the paper's Fig. 4 at its settings (T = 128, 5 states, lam = 500, beta = 100), and our
Bayes-optimal circuit.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sih.experiments.cells import braces, with_error
from sih.experiments.compared import CIRCUITS, circuits_for
from sih.experiments.curves import error_of, mean_of
from sih.experiments.experiment import Experiment
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.predictors import bma, maximum_likelihood
from sih.runs.run_store import RunStore
from sih.task import Task, sample

CAPTION = (
    "KL divergence from the true next-token law (nats) along the sequence for circuits written by hand and run as "
    "transformers (T = 128, lambda = 500, beta = 100), beside maximum likelihood (ML) and the Bayesian model average "
    "(BMA). Means over matrices with Dirichlet(1) rows, bands one standard error over matrices; all on the same "
    "sequences. No models are trained."
)

REFERENCES = ("BMA", "ML", "construction")


@dataclass(frozen=True)
class ConstructionsConfig:
    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    num_states: int = 5
    length: int = 128
    lam: float = 500.0
    beta: float = 100.0
    matrices: int = 12
    sequences: int = 64
    seed: int = 0


@dataclass(frozen=True)
class ConstructionCurves:
    """Means over matrices with their standard errors, `kl[lag set][name]` along positions 0 .. length - 1; of the
    difference to ML likewise (the same sequences, so its error is smaller); and of the mean past max_lag, with
    `mean_over[lag set][reference][name]` its difference to a reference and the standard error of that."""

    config: ConstructionsConfig
    heads: list[dict[str, int]]
    kl: list[dict[str, list[float]]]
    kl_error: list[dict[str, list[float]]]
    over_ml: list[dict[str, list[float]]]
    over_ml_error: list[dict[str, list[float]]]
    mean: list[dict[str, float]]
    mean_error: list[dict[str, float]]
    mean_over: list[dict[str, dict[str, tuple[float, float]]]]


def compute(config: ConstructionsConfig, store: RunStore) -> ConstructionCurves:
    """Every circuit is built for every matrix and run as a transformer; all on the same sequences."""
    curves = ConstructionCurves(config, [], [], [], [], [], [], [], [])
    for lags in config.lag_sets:
        rng = torch.Generator().manual_seed(config.seed)
        found: dict[str, list[Tensor]] = {}
        means: dict[str, list[Tensor]] = {}
        heads: dict[str, int] = {}
        for _ in range(config.matrices):
            task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
            batch = sample(task, config.sequences, rng=rng)
            laws = {"BMA": bma(batch.tokens, task), "ML": maximum_likelihood(batch.tokens, task)}
            for name, model in circuits_for(task, lam=config.lam, beta=config.beta).items():
                heads[name] = model.circuit.heads
                laws[name] = model.predict(batch.tokens)
            for name, law in laws.items():
                kl = kl_to_truth(law, batch, task)
                found.setdefault(name, []).append(kl.mean(dim=0))
                means.setdefault(name, []).append(mean_kl(kl, task).mean())
        over = {name: [a - b for a, b in zip(rows, found["ML"], strict=True)] for name, rows in found.items()}
        curves.heads.append(heads)
        curves.kl.append({name: mean_of(rows).tolist() for name, rows in found.items()})
        curves.kl_error.append({name: error_of(rows).tolist() for name, rows in found.items()})
        curves.over_ml.append({name: mean_of(rows).tolist() for name, rows in over.items()})
        curves.over_ml_error.append({name: error_of(rows).tolist() for name, rows in over.items()})
        curves.mean.append({name: mean_of(rows).item() for name, rows in means.items()})
        curves.mean_error.append({name: error_of(rows).item() for name, rows in means.items()})
        curves.mean_over.append({other: _paired(means, other) for other in REFERENCES})
    return curves


def _paired(means: dict[str, list[Tensor]], reference: str) -> dict[str, tuple[float, float]]:
    over = {name: [a - b for a, b in zip(rows, means[reference], strict=True)] for name, rows in means.items()}
    return {name: (mean_of(rows).item(), error_of(rows).item()) for name, rows in over.items()}


def table(curves: ConstructionCurves) -> list[list[str]]:
    """Header and rows: mean KL past the first max_lag positions, with its standard error over matrices."""
    rows = [["", *(braces(lags) for lags in curves.config.lag_sets)]]
    for name in ("BMA", "ML", *CIRCUITS):
        cells = [
            with_error(mean[name], error[name]) if name in mean else ""
            for mean, error in zip(curves.mean, curves.mean_error, strict=True)
        ]
        rows.append([name, *cells])
    return rows


def against_ml(curves: ConstructionCurves, positions: tuple[int, ...] = (8, 16, 32, 64)) -> list[list[str]]:
    """Header and rows: KL of the paper's construction minus that of ML after so many tokens, on the same sequences."""
    shown = [i for i in positions if i <= curves.config.length]
    rows = [["lags", *map(str, shown)]]
    for lags, over, error in zip(curves.config.lag_sets, curves.over_ml, curves.over_ml_error, strict=True):
        name = braces(lags)
        rows.append([name, *(with_error(over["construction"][i - 1], error["construction"][i - 1]) for i in shown)])
    return rows


EXPERIMENT = Experiment("constructions", CAPTION, ConstructionsConfig(), ConstructionCurves, compute, table=table)
