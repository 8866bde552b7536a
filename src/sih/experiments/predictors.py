"""KL to the truth along the sequence for the reference predictors: what can be known, and what each leaves out.

Sets the scene for the paper's Fig. 4: the same axes and lag sets, without the transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor

from sih.experiments import style
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.predictors import bma, maximum_likelihood, ngram, selective, stationary_law
from sih.task import Task, sample

NAME = "predictors"

PREDICTORS: dict[str, Callable[[Tensor, Task], Tensor]] = {
    "BMA": bma,
    "selective, sum (β=3)": lambda tokens, task: selective(tokens, task, beta=3.0, evidence="sum"),
    "selective, mean (β=100)": lambda tokens, task: selective(tokens, task, beta=100.0),
    "ML": maximum_likelihood,
    "n-gram in context": ngram,
    "stationary law": stationary_law,
}
_LOOKS = {
    "BMA": (style.BLACK, "-"),
    "selective, sum (β=3)": (style.GREEN, (0, (4, 1))),
    "selective, mean (β=100)": (style.BLUE, "-"),
    "ML": (style.RED, (0, (1, 1))),
    "n-gram in context": (style.PURPLE, (0, (3, 1, 1, 1))),
    "stationary law": (style.ORANGE, (0, (5, 2))),
}


@dataclass(frozen=True)
class Config:
    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    num_states: int = 5
    length: int = 128
    matrices: int = 16
    sequences: int = 256
    seed: int = 0


@dataclass(frozen=True)
class Curves:
    """Means over matrices, with their standard errors: `kl[lag set][predictor]` along positions 0 .. length - 1."""

    config: Config
    kl: list[dict[str, list[float]]]
    kl_error: list[dict[str, list[float]]]
    mean: list[dict[str, float]]
    mean_error: list[dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def config() -> Config:
    return Config()


def compute(config: Config) -> Curves:
    """A fresh matrix with Dirichlet(1) rows for each repetition, the same sequences for every predictor."""
    kl, kl_error, mean, mean_error = [], [], [], []
    for lags in config.lag_sets:
        rng = torch.Generator().manual_seed(config.seed)
        curves: dict[str, list[Tensor]] = {name: [] for name in PREDICTORS}
        means: dict[str, list[Tensor]] = {name: [] for name in PREDICTORS}
        for _ in range(config.matrices):
            task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
            batch = sample(task, config.sequences, rng=rng)
            for name, predictor in PREDICTORS.items():
                found = kl_to_truth(predictor(batch.tokens, task), batch, task)
                curves[name].append(found.mean(dim=0))
                means[name].append(mean_kl(found, task).mean())
        kl.append({name: _mean(c).tolist() for name, c in curves.items()})
        kl_error.append({name: _error(c).tolist() for name, c in curves.items()})
        mean.append({name: _mean(m).item() for name, m in means.items()})
        mean_error.append({name: _error(m).item() for name, m in means.items()})
    return Curves(config, kl, kl_error, mean, mean_error)


def draw(curves: Curves) -> Figure:
    with style.paper_style():
        figure = Figure(figsize=(style.PAGE, 4.2))
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        for ax, lags, kl, error in zip(axes.flat, curves.config.lag_sets, curves.kl, curves.kl_error, strict=True):
            first = lags[-1] - 1  # the first position whose next token a lag has made
            positions = torch.arange(first + 1, curves.config.length + 1)
            for name, values in kl.items():
                colour, dashes = _LOOKS[name]
                y = torch.tensor(values[first:]).clamp_min(1e-9)
                spread = torch.tensor(error[name][first:])
                ax.plot(positions, y, color=colour, linestyle=dashes, label=name)
                ax.fill_between(positions, (y - spread).clamp_min(1e-9), y + spread, color=colour, alpha=0.2, lw=0)
            ax.set_title(f"lags {{{', '.join(map(str, lags))}}}")
            ax.set_yscale("log")
            ax.set_ylim(2e-6, 2)
            ax.set_xlim(0, curves.config.length)
            ax.grid(True, which="major", lw=0.3, alpha=0.5)
        for ax in axes[-1]:
            ax.set_xlabel("position $i$ in the sequence")
        for ax in axes[:, 0]:
            ax.set_ylabel("KL to the true law (nats)")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def table(curves: Curves) -> list[list[str]]:
    """Header and rows: mean KL past the first max_lag positions, with its standard error over matrices."""
    rows = [["predictor", *("{" + ",".join(map(str, lags)) + "}" for lags in curves.config.lag_sets)]]
    for name in PREDICTORS:
        cells = zip(curves.mean, curves.mean_error, strict=True)
        rows.append([name, *(style.with_error(mean[name], error[name]) for mean, error in cells)])
    return rows


def _mean(values: list[Tensor]) -> Tensor:
    return torch.stack(values).mean(dim=0)


def _error(values: list[Tensor]) -> Tensor:
    return torch.stack(values).std(dim=0) / math.sqrt(len(values))
