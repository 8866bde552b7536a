"""How depth and second-layer heads change what is learned: the paper's App. "Scaling heads and layers".

Lags {1,2,3}: two layers cannot solve the task, more than three do not help. Lags {1,...,5}: more heads in the second
layer help up to the number of lags; beside them the construction with as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from sih.construction import construct, least_heads
from sih.experiments.cells import braces
from sih.experiments.compared import FRESH_SEED, circuit_law, grouped, scored, trained_law, with_seeds
from sih.experiments.curves import Panel, panel
from sih.experiments.experiment import Experiment
from sih.predictors import bma, maximum_likelihood
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Task, sample
from sih.training.config import TrainConfig

CAPTION = (
    "KL divergence of the predicted from the true next-token law (nats) for standard transformers of different depth "
    "(top, lags {1,2,3}) and with different numbers of second-layer heads (bottom, lags {1,2,3,4,5}; beside them the "
    "construction with as many). Left: along the sequence. Right: means past the first max_lag positions; lines mark "
    "ML and BMA. All on the same fresh sequences; bands and bars are one standard error over sequences, seeds averaged."
)


@dataclass(frozen=True)
class ScalingConfig:
    """Models by name, or folders of runs, for each row; further seeds of a shipped one join it."""

    layers: tuple[str, ...] = (
        "standard-1.2.3-1.1",
        "standard-1.2.3-3.1",
        "standard-1.2.3-1.3",
        "standard-1.2.3-3.3",
        "standard-1.2.3",
        "standard-1.2.3-dim128",
        "standard-1.2.3-1.3.1.1",
        "standard-1.2.3-1.3.1.1.1",
    )
    heads: tuple[str, ...] = (
        "standard-1.2.3.4.5-1.1.1",
        "standard-1.2.3.4.5-1.2.1",
        "standard-1.2.3.4.5-1.3.1",
        "standard-1.2.3.4.5",
        "standard-1.2.3.4.5-1.7.1",
    )
    layers_lags: tuple[int, ...] = (1, 2, 3)
    heads_lags: tuple[int, ...] = (1, 2, 3, 4, 5)
    constructed_heads: tuple[int, ...] = (1, 2, 3, 4, 5)
    sequences: int = 1024
    lam: float = 500.0
    beta: float = 100.0
    seed: int = 0


@dataclass(frozen=True)
class ScalingCurves:
    """Models are named by the heads of their layers, "[1,3,1]", circuits by their second layer's, "construction, 3".
    `runs["{1,2,3} [1,3,1]"]` are the models behind a curve, its seeds."""

    config: ScalingConfig
    layers: Panel
    heads: Panel
    runs: dict[str, list[str]]
    missing: list[str]


def reads(config: ScalingConfig, store: RunStore) -> tuple[str, ...]:
    """The trained models it reads, or would if they were there."""
    return with_seeds([*config.layers, *config.heads], store)


def compute(config: ScalingConfig, store: RunStore) -> ScalingCurves:
    deep, no_deep = store.finished(with_seeds(config.layers, store))
    wide, no_wide = store.finished(with_seeds(config.heads, store))
    layers = _panel(config, config.layers_lags, grouped(deep.values(), name_of), ())
    heads = _panel(config, config.heads_lags, grouped(wide.values(), name_of), config.constructed_heads)
    runs = {
        f"{braces(group[0].task.lags)} {name}": [run.name for run in group]
        for row in (wide, deep)  # a curve of both rows has its seeds from the first
        for name, group in grouped(row.values(), name_of).items()
    }
    return ScalingCurves(config, layers, heads, runs, [*no_deep, *no_wide])


def name_of(run: Run) -> str:
    """The heads of its layers, the paper's notation, and the width where it is not 64."""
    dim = run.config.unusual().get("dim")
    return f"[{','.join(map(str, run.config.heads))}]{f', d={dim}' if dim else ''}"


def _panel(
    config: ScalingConfig, lags: tuple[int, ...], groups: dict[str, list[Run]], circuits: tuple[int, ...]
) -> Panel:
    """Curves of the models, those that differ by seed only averaged, and of circuits with so many heads."""
    runs = [run for group in groups.values() for run in group]
    task = runs[0].task if runs else TrainConfig(lags=lags).task.build()
    for run in runs:
        if run.task.lags != lags or run.task != task:
            raise ValueError(f"models of one row share lags {lags}, length and matrix; {run.name} has others")
    batch = sample(task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
    laws = {"BMA": bma(batch.tokens, task), "ML": maximum_likelihood(batch.tokens, task)}
    kl = {name: scored(law, batch, task) for name, law in laws.items()}
    for name, group in groups.items():
        kl[name] = torch.stack([scored(trained_law(run, batch.tokens), batch, task) for run in group]).mean(dim=0)
    for count in circuits:
        kl[f"construction, {count}"] = scored(_constructed(config, count, task, batch.tokens), batch, task)
    return panel(kl, lags, ("BMA", "ML", *groups))


def _constructed(config: ScalingConfig, count: int, task: Task, tokens: torch.Tensor) -> torch.Tensor:
    """More heads than the least number that loses nothing change nothing."""
    heads = min(count, least_heads(task.lags).heads)
    model = construct(task, heads=heads, third="position", lam=config.lam, beta=config.beta)
    return circuit_law(model, tokens, task)


def table(data: ScalingCurves) -> list[list[str]]:
    """A row a model: mean KL past the first max_lag positions, and minus ML's on the same sequences."""
    rows = [["lags", "heads", "mean KL", "minus ML", "minus BMA"]]
    for row in (data.layers, data.heads):
        for name, found in row.kl.items():
            over = [str(row.over[other][name]) if name != other else "" for other in ("ML", "BMA")]
            rows.append([braces(row.lags), name, str(found), *over])
    return rows


EXPERIMENT = Experiment("scaling", CAPTION, ScalingConfig(), ScalingCurves, compute, reads, table)
