r"""Cumulative averages of $\tilde p_{i,r}$ along one sequence for each true lag: the paper's figures of App. E."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from sih.artifacts.record_json import Saved
from sih.evidence import normalised_probabilities
from sih.figures import style
from sih.task import Task, sample
from sih.theory.claim import claim_expectations
from sih.theory.monte_carlo import PAPER_LAGS, random_matrices

NAME = "claim_cumulative"
CAPTION = (
    "Cumulative average of the normalised transition probabilities along one sequence of each true lag (red) of the "
    "paper's twelve, against the number of transitions seen, for one matrix. Dashes: the exact expectation of the "
    "true lag (red) and the largest of the others (blue). One sequence a panel, so no error bars. No models are "
    "trained."
)


@dataclass(frozen=True)
class Config:
    num_states: int = 10
    lags: tuple[int, ...] = PAPER_LAGS
    length: int = 1000
    concentration: float = 1.0
    seed: int = 0


FIGURES = {NAME: Config(), f"{NAME}_25": Config(num_states=25)}


@dataclass(frozen=True)
class Paths(Saved):
    """`average[true lag][lag][n]` after n + 1 transitions past the first max_lag tokens; `limit` is exact."""

    lags: tuple[int, ...]
    average: list[list[list[float]]]
    limit: list[list[float]]


def config() -> Config:
    return Config()


def compute(config: Config) -> Paths:
    P = random_matrices(config.num_states, 1, seed=config.seed, concentration=config.concentration)[0]
    return of_matrix(P, config.lags, config.length, config.seed)


def of_matrix(P: Float[Tensor, "state state"], lags: tuple[int, ...], length: int, seed: int) -> Paths:
    """One sequence of each lag from the given matrix."""
    rng = torch.Generator().manual_seed(seed)
    task = Task(P, lags, lags[-1] + length)
    average = []
    for k in lags:
        tokens = sample(Task(P, (k,), task.length), 1, rng=rng).tokens
        p_norm = normalised_probabilities(tokens, task)[0, task.max_lag :].T  # (lag, transition)
        average.append((p_norm.cumsum(dim=-1) / torch.arange(1, length + 1)).tolist())
    return Paths(lags, average, claim_expectations(P, lags).tolist())


def draw(data: Paths) -> Figure:
    """A panel for each true lag: its own average in red above the others; dashes at the exact expectations."""
    count = len(data.lags)
    columns = min(count, 4 if count > 4 else count)
    rows = math.ceil(count / columns)
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 0.5 + 1.3 * rows))
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for j, ax in enumerate(panels.flat):
            if j >= count:
                ax.set_visible(False)
                continue
            steps = range(1, len(data.average[j][0]) + 1)
            for i in [i for i in range(count) if i != j] + [j]:  # the true lag on top
                own = i == j
                ax.plot(steps, data.average[j][i], color=style.RED if own else style.SKY, lw=1.2 if own else 0.6)
            ax.axhline(data.limit[j][j], color=style.RED, lw=0.6, ls=(0, (3, 2)))
            ax.axhline(max(v for i, v in enumerate(data.limit[j]) if i != j), color=style.BLUE, lw=0.6, ls=(0, (3, 2)))
            ax.set_title(f"true lag {data.lags[j]}")
            ax.set_xscale("log")
            if j >= count - columns:
                ax.tick_params(labelbottom=True)
                ax.set_xlabel("transitions seen")
        top = max(max(limit) for limit in data.limit)
        panels[0, 0].set_ylim(0, 2.2 * top)
        for ax in panels[:, 0]:
            ax.set_ylabel(r"average of $\tilde p_{i,r}$")
    return figure


def settled_after(data: Paths) -> list[int]:
    """For each true lag, the number of transitions from which on its average stays the largest (the length + 1 if it
    is not at the end)."""
    found = []
    for j, paths in enumerate(data.average):
        others = [max(values) for values in zip(*(path for i, path in enumerate(paths) if i != j), strict=True)]
        behind = [n for n, (own, other) in enumerate(zip(paths[j], others, strict=True), 1) if own <= other]
        found.append(behind[-1] + 1 if behind else 1)
    return found
