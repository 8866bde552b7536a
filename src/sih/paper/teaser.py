"""The task and the circuit at a glance: the paper's Fig. 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.reference_circuit import reference_model, sequence_of_lag
from sih.base.record import Size
from sih.heads import heads_needed
from sih.models.offsets import attention_at
from sih.results.experiment import Experiment, Lags, Positive, Seeded, States
from sih.task import Task
from sih.task.matrices import random_transition_matrix


@dataclass(frozen=True)
class TeaserConfig(Seeded):
    lags: Lags = (1, 2)
    true_lag: Size = 2
    num_states: States = 4
    concentration: Positive = 0.4
    """Of the rows of P: small enough that a few tokens tell the lags apart."""
    length: Size = 32
    shown: Size = 16
    """Tokens drawn one by one."""


@dataclass(frozen=True, eq=False)
class Teaser:
    """Holds sequences, as states from 0, and the construction's attention on the last of them.

    `examples` has one for each lag. `weights`, at the last token shown, has one for each lag too.
    """

    config: TeaserConfig
    examples: Int[Tensor, "lag shown"]
    tokens: Int[Tensor, " time"]
    weights: Float[Tensor, " lag"]
    maps: Float[Tensor, "layer query key"]
    """Of the first head of each layer."""
    heads: tuple[int, ...]


def compute(config: TeaserConfig, store: object) -> Teaser:
    """Draw sequences of every lag, and run the construction on one more."""
    rng = config.rng()
    P = random_transition_matrix(config.num_states, concentration=config.concentration, rng=rng)
    task = Task(P, config.lags, config.length)
    if not task.max_lag <= config.shown <= config.length:
        raise ValueError(
            f"shown is between the largest lag and the length of {config.length}; got {config.shown}"
        )
    examples = [sequence_of_lag(task, k, rng=rng)[0, : config.shown] for k in config.lags]
    tokens = sequence_of_lag(task, config.true_lag, rng=rng)
    model = reference_model(task, heads_needed(config.lags))
    attention = model.trace(tokens).attention
    weights = attention_at(attention[-1][:, 0], [k - 1 for k in config.lags])[0, config.shown - 1]
    maps = torch.stack([layer[0, 0] for layer in attention])
    return Teaser(config, torch.stack(examples), tokens[0], weights, maps, model.config.heads)


EXPERIMENT = Experiment("teaser", TeaserConfig(), Teaser, compute)
