"""KL to the truth of predictions that are compared on the same sequences of random matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sih.base.types import Law, TokenTensor
from sih.predictors.metrics import kl_to_truth
from sih.results.curves import Compared, Panel, curve
from sih.results.experiment import Seeded
from sih.task import Task, sample
from sih.task.matrices import random_transition_matrix

Predict = Callable[[TokenTensor, Task], Mapping[str, tuple[Compared, Law]]]
"""Returns what each of the compared predicts, by its label."""


@dataclass(frozen=True)
class MatricesConfig(Seeded):
    """Means over random matrices with Dirichlet(1) rows, for each set of lags."""

    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    num_states: int = 5
    length: int = 128
    matrices: int = 16
    sequences: int = 256
    """Of each matrix."""


def panel_over_matrices(config: MatricesConfig, lags: tuple[int, ...], predict: Predict) -> Panel:
    """Return the KL of all that `predict` compares, on the same sequences of each matrix."""
    rng = config.rng()
    compared: dict[str, Compared] = {}
    kl = defaultdict[str, list[Tensor]](list)
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        batch = sample(task, config.sequences, rng=rng)
        for label, (what, law) in predict(batch.tokens, task).items():
            compared[label] = what
            kl[label].append(kl_to_truth(law, batch, task).mean(dim=0))
    curves = {label: curve(torch.stack(rows), max(lags)) for label, rows in kl.items()}
    return Panel(lags, compared, curves)
