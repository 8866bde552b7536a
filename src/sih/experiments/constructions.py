"""KL to the truth along the sequence for circuits written by hand, run as weights, beside BMA and ML.

The constructed half of the paper's Fig. 4 at its settings (T = 128, 5 states, lam = 500, beta = 100), and our
Bayes-optimal circuit.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from sih.experiments.compared import circuits_for, yardsticks
from sih.experiments.curves import CIRCUIT, PREDICTOR, Compared, Panel, mean_kl_table, panel
from sih.experiments.experiment import Experiment, Rows
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth
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
    """Holds a panel for each lag set, with differences to `REFERENCES`. Repetitions are matrices."""

    config: ConstructionsConfig
    panels: list[Panel]


def compute(config: ConstructionsConfig, store: RunStore) -> ConstructionCurves:
    """Build every circuit for every matrix and run it as a transformer, all on the same sequences."""
    return ConstructionCurves(config, [_panel(config, lags) for lags in config.lag_sets])


def _panel(config: ConstructionsConfig, lags: tuple[int, ...]) -> Panel:
    rng = torch.Generator().manual_seed(config.seed)
    found: dict[str, list[Tensor]] = {}
    compared: dict[str, Compared] = {}
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        batch = sample(task, config.sequences, rng=rng)
        laws, circuits = yardsticks(batch.tokens, task), circuits_for(task, lam=config.lam, beta=config.beta)
        compared |= dict.fromkeys(laws, Compared(PREDICTOR))
        compared |= {label: Compared(CIRCUIT, model.config.heads) for label, model in circuits.items()}
        laws |= {label: model.predict(batch.tokens) for label, model in circuits.items()}
        for label, law in laws.items():
            found.setdefault(label, []).append(kl_to_truth(law, batch, task).mean(dim=0))
    return panel(lags, compared, {label: torch.stack(rows) for label, rows in found.items()}, REFERENCES)


def table(data: ConstructionCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels)


EXPERIMENT = Experiment("constructions", CAPTION, ConstructionsConfig(), ConstructionCurves, compute, table=table)
