"""KL to the truth along the sequence for the reference predictors: what can be known, and what each leaves out.

Sets the scene for the paper's Fig. 4: the same axes and lag sets, without the transformers.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sih.experiments.cells import braces, with_error
from sih.experiments.curves import error_of, mean_of
from sih.experiments.experiment import Experiment
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.predictors import PREDICTORS
from sih.runs.run_store import RunStore
from sih.task import Task, sample

CAPTION = (
    "KL divergence from the true next-token law (nats) along the sequence for reference predictors that know the "
    "matrix and the lags (all but the n-gram), 5 states. Means over matrices with Dirichlet(1) rows, bands one "
    "standard error over matrices. No models are trained."
)


@dataclass(frozen=True)
class PredictorsConfig:
    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    num_states: int = 5
    length: int = 128
    matrices: int = 16
    sequences: int = 256
    seed: int = 0


@dataclass(frozen=True)
class PredictorCurves:
    """Means over matrices, with their standard errors: `kl[lag set][predictor]` along positions 0 .. length - 1."""

    config: PredictorsConfig
    kl: list[dict[str, list[float]]]
    kl_error: list[dict[str, list[float]]]
    mean: list[dict[str, float]]
    mean_error: list[dict[str, float]]


def compute(config: PredictorsConfig, store: RunStore) -> PredictorCurves:
    """A fresh matrix with Dirichlet(1) rows for each repetition, the same sequences for every predictor."""
    kl, kl_error, mean, mean_error = [], [], [], []
    for lags in config.lag_sets:
        rng = torch.Generator().manual_seed(config.seed)
        curves: dict[str, list[Tensor]] = {one.label: [] for one in PREDICTORS.values()}
        means: dict[str, list[Tensor]] = {one.label: [] for one in PREDICTORS.values()}
        for _ in range(config.matrices):
            task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
            batch = sample(task, config.sequences, rng=rng)
            for one in PREDICTORS.values():
                found = kl_to_truth(one.law(batch.tokens, task), batch, task)
                curves[one.label].append(found.mean(dim=0))
                means[one.label].append(mean_kl(found, task).mean())
        kl.append({name: mean_of(c).tolist() for name, c in curves.items()})
        kl_error.append({name: error_of(c).tolist() for name, c in curves.items()})
        mean.append({name: mean_of(m).item() for name, m in means.items()})
        mean_error.append({name: error_of(m).item() for name, m in means.items()})
    return PredictorCurves(config, kl, kl_error, mean, mean_error)


def table(curves: PredictorCurves) -> list[list[str]]:
    """Header and rows: mean KL past the first max_lag positions, with its standard error over matrices."""
    rows = [["predictor", *(braces(lags) for lags in curves.config.lag_sets)]]
    for name in curves.kl[0]:
        cells = zip(curves.mean, curves.mean_error, strict=True)
        rows.append([name, *(with_error(mean[name], error[name]) for mean, error in cells)])
    return rows


EXPERIMENT = Experiment("predictors", CAPTION, PredictorsConfig(), PredictorCurves, compute, table=table)
