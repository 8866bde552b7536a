r"""Cumulative averages of $\tilde p_{i,r}$ along one sequence for each true lag: the
paper's figures of App. E.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.record import Size
from sih.base.types import TransitionMatrix
from sih.claim.exact import claim_expectations
from sih.claim.monte_carlo import PAPER_LAGS, random_matrices
from sih.predictors.evidence import normalised_probabilities
from sih.results.experiment import (
    Experiment,
    Lags,
    MatrixLaw,
    Positive,
    Seeded,
    States,
    check_comparable,
)
from sih.task import Task, sample


@dataclass(frozen=True)
class CumulativeConfig(Seeded):
    num_states: States = 10
    lags: Lags = PAPER_LAGS
    length: Size = 1000
    """Number of transitions."""
    matrix_law: MatrixLaw = "uniform"
    concentration: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_comparable(self.lags)


@dataclass(frozen=True, eq=False)
class CumulativePaths:
    """Averages `average[true lag][lag][n]` after n + 1 transitions beyond the first
    max_lag tokens, with their limit.
    """

    lags: tuple[int, ...]
    average: Float[Tensor, "true lag transition"]
    limit: Float[Tensor, "true lag"]


def compute(config: CumulativeConfig, store: object) -> CumulativePaths:
    """Return the averages along one sequence per lag, for one random matrix."""
    how: dict[str, Any] = {"concentration": config.concentration, "law": config.matrix_law}
    P = random_matrices(config.num_states, 1, seed=config.seed, **how)[0]
    return of_matrix(P, config.lags, config.length, config.seed)


def of_matrix(
    P: TransitionMatrix, lags: tuple[int, ...], length: int, seed: int
) -> CumulativePaths:
    """Return the averages along one sequence per lag, for the given matrix."""
    rng = torch.Generator().manual_seed(seed)
    task = Task(P, lags, lags[-1] + length)
    average = []
    for k in lags:
        tokens = sample(Task(P, (k,), task.length), 1, rng=rng).tokens
        p_norm = normalised_probabilities(tokens, task)[0, task.max_lag :].T  # (lag, transition)
        average.append(p_norm.cumsum(dim=-1) / torch.arange(1, length + 1))
    return CumulativePaths(lags, torch.stack(average), claim_expectations(P, lags))


def settled_after(data: CumulativePaths) -> list[int]:
    """Return for each true lag the number of transitions after which its average stays
    the largest.

    It is length + 1 if the average is not the largest at the end.
    """
    found = []
    for j, paths in enumerate(data.average):
        others = torch.cat([paths[:j], paths[j + 1 :]]).amax(dim=0)
        behind = (paths[j] <= others).nonzero().flatten()
        found.append(int(behind[-1]) + 2 if len(behind) else 1)
    return found


EXPERIMENT = Experiment("claim_cumulative", CumulativeConfig(), CumulativePaths, compute)

EXPERIMENT_25 = Experiment(
    "claim_cumulative_25", CumulativeConfig(num_states=25), CumulativePaths, compute
)
