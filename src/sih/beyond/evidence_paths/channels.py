"""Evidence paths of every trained model's choice of a lag: layer 2's values or its
attention patterns.

References are the hand-written circuits for the same lags and matrix, with their mean
KL on the same sequences. See docs/results/evidence-paths.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from sih.attention.correlation import (
    pair_log_probabilities,
    probability_correlation,
    score_correlation,
)
from sih.attention.distances import Measured, measured
from sih.beyond.evidence_paths.channel_shares import Channels, read_channels
from sih.beyond.evidence_paths.phases import Phases, has_phases, read_phases
from sih.circuits import construct
from sih.models.base import Model
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.results.beside import (
    circuit_law,
    yardsticks,
)
from sih.results.experiment import FRESH_SEED, Experiment, Seeded
from sih.results.models import (
    Models,
    TrainedModel,
    described,
    model_of,
    shipped_models,
    trained_plainly,
)
from sih.results.tables import braces
from sih.task import Batch, Task, sample
from sih.training.config import TrainConfig
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True)
class AccountConfig(Seeded):
    models: tuple[str, ...] = ()
    """Names of models. Default: all shipped models of three layers or more."""
    sequences: int = 256
    reference: int = 512
    """Sequences for means, different from those above."""


@dataclass(frozen=True, eq=False)
class ModelAccount:
    """Measurements of one model, with its description."""

    model: TrainedModel
    channels: Channels
    phases: Phases | None
    """Phases, for models with heads (1, H, 1)."""
    layer_1: dict[str, Measured]
    """Correlations at the lags: of layer 1's scores with log P ("log P"), and of its
    attention with p-tilde ("p"); {} if P has zeros."""


@dataclass(frozen=True, eq=False)
class Accounts:
    config: AccountConfig
    models: dict[str, ModelAccount]
    circuits: dict[str, dict[str, Measured]]
    """By lag set: mean KL of the Bayes average, maximum likelihood, and circuits with
    their numbers of heads."""
    missing: tuple[str, ...]


def has_channels(config: TrainConfig) -> bool:
    """Return whether a model has three layers or more."""
    return len(config.heads) > 2


def reads(config: AccountConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models of three layers or
    more with channels.
    """
    found = shipped_models(Models(layers=(3, 4, 5)))
    return config.models or tuple(name for name in found if has_channels(store.run(name).config))


def compute(config: AccountConfig, store: RunStore) -> Accounts:
    """Return the measurements of each model on fresh sequences of its task."""
    runs, missing = store.finished(reads(config, store))
    if not runs:
        raise ValueError("no trained model of three layers or more is there")
    models, circuits = {}, {}
    facts = described(runs.values())
    for run in sorted(
        runs.values(), key=lambda run: (not trained_plainly(run.config), run.task.lags, run.name)
    ):
        models[run.name] = replace(account(run.model, run, config), model=facts[run.name])
        if braces(run.task.lags) not in circuits and run.task.length == max(
            one.task.length for one in runs.values()
        ):
            circuits[braces(run.task.lags)] = by_hand(run.task, config)
    return Accounts(config, models, circuits, tuple(missing))


@torch.no_grad()
def account(model: Model, run: Run, config: AccountConfig) -> ModelAccount:
    """Return the measurements of one model, possibly at an earlier step of its run."""
    task = run.task
    batch, reference = (draw(task, config, part) for part in ("sequences", "reference"))
    channels = read_channels(model, task, batch, reference, config.fresh_rng())
    layer_1 = _layer_1(model, task, batch.tokens[:64]) if (task.P > 0).all() else {}
    phases = read_phases(model, task) if has_phases(model, task) else None
    return ModelAccount(model_of(run), channels, phases, layer_1)


def _layer_1(model: Model, task: Task, tokens: Int[Tensor, "batch time"]) -> dict[str, Measured]:
    trace, position = model.trace(tokens), torch.arange(task.length)
    past = (position[:, None] >= task.max_lag) & torch.isin(
        position[:, None] - position, torch.tensor(task.lags)
    )
    correlation = score_correlation(
        trace["1.1/scores"][..., trace.first :, trace.first :],
        pair_log_probabilities(tokens, task.P),
        past,
    )
    return {
        "log P": measured(correlation),
        "p": (probability_correlation(trace.between_tokens[0][:, 0], tokens, task), 0.0),
    }


def draw(task: Task, config: AccountConfig, part: str) -> Batch:
    """Return fresh sequences for measurements, or others for means."""
    seed = FRESH_SEED + config.seed + (10_000 if part == "sequences" else 20_000)
    return sample(task, getattr(config, part), rng=seed)


def by_hand(task: Task, config: AccountConfig) -> dict[str, Measured]:
    """Return the mean KL of reference predictors and circuits, each with its
    second-layer heads.
    """
    batch = draw(task, config, "sequences")
    laws = yardsticks(batch.tokens, task)
    models = {"the paper's": construct(task), "Bayes": construct(task, target="bayes")}
    models["looking"] = construct(task, target="looking")
    models["the paper's, fewer"] = construct(task, heads=1, third="position")
    models["Bayes, from both sides"] = construct(task, target="bayes", heads=1, reading="both")
    for name, model in models.items():
        laws[f"{name}, heads: {model.config.heads[1]}"] = circuit_law(model, batch.tokens, task)
    return {
        name: measured(mean_kl(kl_to_truth(law, batch, task), task)) for name, law in laws.items()
    }


EXPERIMENT = Experiment(
    "channels", AccountConfig(), Accounts, compute, reads, beyond=True, shipped=True
)
