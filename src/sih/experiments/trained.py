"""KL to the truth along the sequence for trained models beside circuits, BMA and ML: the paper's Fig. 4.

All that share a panel predict the same fresh sequences of the matrix on which its models were trained.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.construction import heads_needed
from sih.experiments.cells import braces
from sih.experiments.compared import (
    FRESH_SEED,
    circuit_law,
    circuits_for,
    grouped,
    scored,
    trained_law,
    with_seeds,
)
from sih.experiments.curves import Line, Panel, line, panel
from sih.experiments.experiment import Experiment
from sih.predictors import bma, maximum_likelihood
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Batch, Task, sample
from sih.training.config import TrainConfig

CAPTION = (
    "KL divergence of the predicted from the true next-token law (nats) along the sequence, for circuits written by "
    "hand, trained transformers, maximum likelihood (ML) and the Bayesian model average (BMA); 5 states, T = 128. "
    "Means over fresh sequences of the matrix the models were trained on, the same for all curves of a panel; bands "
    "are one standard error over sequences, or the range over seeds where there are several. The last position is left "
    "out: it has no next token, so that no model was trained there."
)


ORDER = (
    *("BMA", "Bayes-optimal construction", "ML", "construction", "construction, 1 head", "two lags, 1 head"),
    *("trained standard", "trained standard, 1 head", "trained disentangled", "trained disentangled, 1 head"),
)


@dataclass(frozen=True)
class TrainedConfig:
    """Models by name, or folders of runs; further seeds of a shipped one join it. The disentangled ones take many
    times as long, and predict the first `disentangled_sequences` only."""

    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    models: tuple[str, ...] = (
        "standard-1.2.3",
        "standard-1.2.3-1.1.1",
        "disentangled-1.2.3",
        "standard-1.3.4",
        "disentangled-1.3.4",
        "standard-1.2.3.4.5",
        "standard-1.2.3.4.5-1.1.1",
        "disentangled-1.2.3.4.5",
        "standard-1.3",
        "disentangled-1.3",
    )
    sequences: int = 1024
    disentangled_sequences: int = 512
    lam: float = 500.0
    beta: float = 100.0
    seed: int = 0


@dataclass(frozen=True)
class TrainedCurves:
    """A panel for each lag set (for each matrix, if its models have several); the lists go along with `panels`.

    A curve of several seeds is their mean on every sequence; `seeds` has each model's own. `leaning` is the total
    variation of a law from BMA's minus that from ML's: negative where it is nearer BMA.
    """

    config: TrainedConfig
    panels: list[Panel]
    heads: list[dict[str, int]]
    runs: list[dict[str, list[str]]]
    seeds: list[dict[str, Line]]
    leaning: list[dict[str, Line]]
    missing: list[str]


def reads(config: TrainedConfig, store: RunStore) -> tuple[str, ...]:
    """The trained models it reads, or would if they were there."""
    return with_seeds(config.models, store)


def compute(config: TrainedConfig, store: RunStore) -> TrainedCurves:
    """Every panel's sequences are drawn once; trained models are run, circuits as `circuit_law` has it."""
    runs, missing = store.finished(reads(config, store))
    data = TrainedCurves(config, [], [], [], [], [], missing)
    for lags in config.lag_sets:
        trained = [run for run in runs.values() if run.task.lags == lags]
        for task in dict.fromkeys([run.task for run in trained] or [TrainConfig(lags=lags).task.build()]):
            _add_panel(data, task, [run for run in trained if run.task == task])
    return data


def name_of(run: Run) -> str:
    """The curve a model belongs to: as many second-layer heads as the circuit needs (one for two lags), or one."""
    lags, heads = run.task.lags, run.config.heads
    enough = heads_needed(lags)
    if heads not in ((1, enough, 1), (1, 1, 1)):
        raise ValueError(
            f"for the lags {lags} this figure has the heads (1, {enough}, 1) or one; {run.name} has {heads}"
        )
    return f"trained {run.config.model.kind}" + (", 1 head" if heads[1] < enough else "")


def _add_panel(data: TrainedCurves, task: Task, runs: list[Run]) -> None:
    config = data.config
    batch = sample(task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
    circuits, groups = circuits_for(task, lam=config.lam, beta=config.beta), grouped(runs, name_of)
    likely = {"BMA": bma(batch.tokens, task), "ML": maximum_likelihood(batch.tokens, task)}
    laws = likely | {name: circuit_law(model, batch.tokens, task) for name, model in circuits.items()}
    kl = {name: scored(law, batch, task) for name, law in laws.items()}
    lean = {name: leaning(law, likely["BMA"], likely["ML"]) for name, law in laws.items()}
    seeds: dict[str, Line] = {}
    for name, group in groups.items():
        size = config.disentangled_sequences if group[0].config.model.kind == "disentangled" else config.sequences
        part = Batch(batch.tokens[:size], batch.lags[:size])
        predicted = [trained_law(run, part.tokens).double() for run in group]
        each = [scored(law, part, task) for law in predicted]
        seeds |= {run.name: line(rows, task.max_lag) for run, rows in zip(group, each, strict=True)}
        kl[name] = torch.stack(each).mean(dim=0)
        lean[name] = torch.stack([leaning(law, likely["BMA"][:size], likely["ML"][:size]) for law in predicted]).mean(
            dim=0
        )
    data.panels.append(panel(kl, task.lags, ("BMA", "ML", "construction", "construction, 1 head")))
    heads = {name: model.circuit.heads for name, model in circuits.items()}
    data.heads.append(heads | {name: group[0].config.heads[1] for name, group in groups.items()})
    data.runs.append({name: [run.name for run in group] for name, group in groups.items()})
    data.seeds.append(seeds)
    data.leaning.append({name: line(rows[:, :-1], task.max_lag) for name, rows in lean.items()})


def leaning(
    law: Float[Tensor, "batch time state"],
    bma: Float[Tensor, "batch time state"],
    ml: Float[Tensor, "batch time state"],
) -> Float[Tensor, "batch time"]:
    r"""$\frac12\|q - q_{BMA}\|_1 - \frac12\|q - q_{ML}\|_1$: negative where the law q is nearer BMA's than ML's.

    Paper: Sec. 6, "closer to the BMA rather than the ML for small sequence lengths" (there of KL; see `Panel.over`).
    """
    return ((law - bma).abs().sum(dim=-1) - (law - ml).abs().sum(dim=-1)) / 2


def table(data: TrainedCurves) -> list[list[str]]:
    """Mean KL past the first max_lag positions with its standard error over sequences, a column a panel."""
    rows = [["", *(braces(p.lags) for p in data.panels)]]
    for name in ORDER:
        if any(name in p.kl for p in data.panels):
            rows.append([name, *(str(p.kl[name]) if name in p.kl else "" for p in data.panels)])
    return rows


def differences(data: TrainedCurves, reference: str) -> list[list[str]]:
    """The same of KL minus the reference's ("ML", "BMA", "construction") on the same sequences."""
    rows = [[f"minus {reference}", *(braces(p.lags) for p in data.panels)]]
    for name in ORDER:
        if any(name in p.over[reference] for p in data.panels):
            cells = [str(p.over[reference][name]) if name in p.over[reference] else "" for p in data.panels]
            rows.append([name, *cells])
    return rows


EXPERIMENT = Experiment("trained", CAPTION, TrainedConfig(), TrainedCurves, compute, reads, table)
