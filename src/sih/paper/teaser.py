"""The task and the circuit at a glance: the paper's Fig. 1, with a trained model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.reference_circuit import sequence_of_lag
from sih.models.offsets import attention_at
from sih.results.experiment import Experiment, Seeded
from sih.results.models import training_of
from sih.task import Task
from sih.training.runs.run_store import RunStore


@dataclass(frozen=True)
class TeaserConfig(Seeded):
    """A model of three layers, and a sequence of its task.

    The default model is trained on lags 1 and 2, 4 states and length 32. Its rows of P
    are far enough from uniform that a few tokens identify the lag.
    """

    model: str = "teaser-1.2"
    true_lag: int = 2
    shown: int = 16
    """Tokens drawn one by one."""


@dataclass(frozen=True, eq=False)
class Teaser:
    """Sequences, as states from 0, and the model's attention on the last of them.

    `examples` has one sequence per lag. `weights` is the third layer's attention to
    each lag's candidate, at the last token shown.
    """

    config: TeaserConfig
    lags: tuple[int, ...]
    as_in_the_paper: bool
    """Whether the model is trained as in the paper."""
    examples: Int[Tensor, "lag shown"]
    tokens: Int[Tensor, " time"]
    weights: Float[Tensor, " lag"]
    maps: Float[Tensor, "layer query key"]
    """Maps of the first head of each layer, without the last position: no token follows
    it."""
    heads: tuple[int, ...]


def reads(config: TeaserConfig, store: object) -> tuple[str, ...]:
    """Return the name of the one model."""
    return (config.model,)


@torch.no_grad()
def compute(config: TeaserConfig, store: RunStore) -> Teaser:
    """Return sequences of every lag, and the model's attention on one more."""
    rng = config.rng()
    run = store.run(config.model)
    task: Task = run.task
    if not task.max_lag <= config.shown < task.length:
        raise ValueError(
            f"shown is at least the largest lag and below the length of {task.length}; "
            f"got {config.shown}"
        )
    if len(run.config.heads) != 3:
        raise ValueError(f"the model has three layers, the circuit's; {config.model} has not")
    examples = [sequence_of_lag(task, k, rng=rng)[0, : config.shown] for k in task.lags]
    tokens = sequence_of_lag(task, config.true_lag, rng=rng)
    trace = run.model.trace(tokens)
    attention = [layer[0, 0].double() for layer in trace.between_tokens]
    weights = attention_at(attention[-1][None], [k - 1 for k in task.lags])[0, config.shown - 1]
    return Teaser(
        config,
        task.lags,
        training_of(run.config) == "paper",
        torch.stack(examples),
        tokens[0],
        weights,
        torch.stack(attention)[:, :-1, :-1],
        run.config.heads,
    )


EXPERIMENT = Experiment("teaser", TeaserConfig(), Teaser, compute, reads)
