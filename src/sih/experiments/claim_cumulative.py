r"""Cumulative averages of $\tilde p_{i,r}$ along one sequence for each true lag: the paper's figures of App. E."""

from dataclasses import dataclass

import torch

from sih.evidence import normalised_probabilities
from sih.markov import TransitionMatrix
from sih.results.experiment import Experiment, Seeded
from sih.runs.run_store import RunStore
from sih.task import Task, sample
from sih.theory.claim import claim_expectations
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

CAPTION = (
    "Cumulative average of the normalised transition probabilities along one sequence of each true lag (red) of the "
    "paper's twelve, against the number of transitions seen, for one matrix. Dashes: the exact expectation of the "
    "true lag (red) and the largest of the others (blue). One sequence a panel, so no error bars. No models are "
    "trained."
)


@dataclass(frozen=True)
class CumulativeConfig(Seeded):
    num_states: int = 10
    lags: tuple[int, ...] = PAPER_LAGS
    length: int = 1000
    concentration: float = 1.0


@dataclass(frozen=True)
class CumulativePaths:
    """Holds `average[true lag][lag][n]` after n + 1 transitions past the first max_lag tokens, and their limit."""

    lags: tuple[int, ...]
    average: list[list[list[float]]]
    limit: list[list[float]]


def compute(config: CumulativeConfig, store: RunStore) -> CumulativePaths:
    """Follow one sequence of each lag, of one random matrix."""
    P = random_matrices(config.num_states, 1, seed=config.seed, concentration=config.concentration)[
        0
    ]
    return of_matrix(P, config.lags, config.length, config.seed)


def of_matrix(
    P: TransitionMatrix, lags: tuple[int, ...], length: int, seed: int
) -> CumulativePaths:
    """Follow one sequence of each lag from the given matrix."""
    rng = torch.Generator().manual_seed(seed)
    task = Task(P, lags, lags[-1] + length)
    average = []
    for k in lags:
        tokens = sample(Task(P, (k,), task.length), 1, rng=rng).tokens
        p_norm = normalised_probabilities(tokens, task)[0, task.max_lag :].T  # (lag, transition)
        average.append((p_norm.cumsum(dim=-1) / torch.arange(1, length + 1)).tolist())
    return CumulativePaths(lags, average, claim_expectations(P, lags).tolist())


def settled_after(data: CumulativePaths) -> list[int]:
    """Count for each true lag the transitions after which its average stays the largest.

    It is the length + 1 where the average is not the largest at the end.
    """
    found = []
    for j, paths in enumerate(data.average):
        others = [
            max(values)
            for values in zip(*(path for i, path in enumerate(paths) if i != j), strict=True)
        ]
        behind = [
            n
            for n, (own, other) in enumerate(zip(paths[j], others, strict=True), 1)
            if own <= other
        ]
        found.append(behind[-1] + 1 if behind else 1)
    return found


EXPERIMENT = Experiment("claim_cumulative", CAPTION, CumulativeConfig(), CumulativePaths, compute)
EXPERIMENT_25 = Experiment(
    "claim_cumulative_25", CAPTION, CumulativeConfig(num_states=25), CumulativePaths, compute
)
