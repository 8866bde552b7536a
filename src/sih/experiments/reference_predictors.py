"""KL to the truth along the sequence for the reference predictors: what can be known, and what each leaves out.

Sets the scene for the paper's Fig. 4: the same axes and lag sets, without the transformers.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sih.experiments.curves import PREDICTOR, Compared, Panel, mean_kl_table, panel
from sih.experiments.experiment import Experiment, Rows
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth
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
    """Holds a panel for each lag set. Repetitions are matrices."""

    config: PredictorsConfig
    panels: list[Panel]


def compute(config: PredictorsConfig, store: RunStore) -> PredictorCurves:
    """Draw a fresh matrix with Dirichlet(1) rows for each repetition, and the same sequences for every predictor."""
    return PredictorCurves(config, [_panel(config, lags) for lags in config.lag_sets])


def _panel(config: PredictorsConfig, lags: tuple[int, ...]) -> Panel:
    rng = torch.Generator().manual_seed(config.seed)
    found: dict[str, list[Tensor]] = {predictor.label: [] for predictor in PREDICTORS.values()}
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        batch = sample(task, config.sequences, rng=rng)
        for predictor in PREDICTORS.values():
            kl = kl_to_truth(predictor.law(batch.tokens, task), batch, task)
            found[predictor.label].append(kl.mean(dim=0))
    kl_by_matrix = {label: torch.stack(rows) for label, rows in found.items()}
    return panel(lags, dict.fromkeys(found, Compared(PREDICTOR)), kl_by_matrix)


def table(data: PredictorCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels, "predictor")


EXPERIMENT = Experiment("predictors", CAPTION, PredictorsConfig(), PredictorCurves, compute, table=table)
