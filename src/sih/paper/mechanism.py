"""The second layer at work: the paper's Fig. 2, from the trace of a constructed model."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.reference_circuit import sequence_of_lag
from sih.base.record import Size
from sih.circuits import construct
from sih.results.experiment import Experiment, Lags, Seeded, States
from sih.task import Task
from sih.task.matrices import random_transition_matrix


@dataclass(frozen=True)
class MechanismConfig(Seeded):
    lags: Lags = (1, 2, 3)
    length: Size = 10
    true_lag: Size = 2
    num_states: States = 5


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Inputs and outputs of layer 2. Positions count from 0; the query is the last
    token.
    """

    config: MechanismConfig
    stored: Float[Tensor, "token index"]
    """`stored[token][index]` after layer 1."""
    attention: Float[Tensor, "head token"]
    """`attention[head][token]` of the query in layer 2."""
    gathered: Float[Tensor, "head index"]
    """`gathered[head][index]` for the query after layer 2."""
    source: Int[Tensor, "head index"]
    """The token that contributes most to `gathered[head][index]`; -1 for none."""
    purity: Float[Tensor, "head index"]
    """Share of the entry that comes from this token: 1 if nothing is mixed."""


def compute(config: MechanismConfig, store: object) -> Mechanism:
    """Return the mechanism from the trace of a constructed model on one sequence."""
    rng = config.rng()
    task = Task(random_transition_matrix(config.num_states, rng=rng), config.lags, config.length)
    trace = construct(task).trace(sequence_of_lag(task, config.true_lag, rng=rng))
    stored = trace.stream("1.1/position")[0]
    attention = trace.attention[1][0, :, -1]
    gathered = torch.stack(
        [trace.stream(f"2.{head + 1}/1.1/position")[0, -1] for head in range(len(attention))]
    )
    parts = attention[:, :, None] * stored  # (head, token, index): the contribution of each token
    largest, source = parts.max(dim=1)
    there = gathered > 1e-9
    source, purity = torch.where(there, source, -1), torch.where(there, largest / gathered, 1.0)
    return Mechanism(config, stored, attention, gathered, source, purity)


EXPERIMENT = Experiment("mechanism", MechanismConfig(), Mechanism, compute)
