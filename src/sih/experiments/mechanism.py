"""The second layer at work: the paper's Fig. 2, read off the trace of a constructed model."""

from dataclasses import dataclass

import torch

from sih.analysis.reference_circuit import sequence_of_lag
from sih.construction import construct
from sih.markov import random_transition_matrix
from sih.results.experiment import Experiment, Seeded
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "The second layer of the construction, from a forward pass of its weights. Top left: what layer 1 stored, a column "
    "a token; token j has the normalised probability of lag k at index j - k (colour: the lag; grey: the first tokens, "
    "made by no lag). Bottom: the attention of the last token in each second-layer head. Right: what the heads "
    "gathered for the last token, the product of the two; every transition of the past is there for every lag, and no "
    "two share an index of the same head."
)


@dataclass(frozen=True)
class MechanismConfig(Seeded):
    lags: tuple[int, ...] = (1, 2, 3)
    length: int = 10
    true_lag: int = 2
    num_states: int = 5


@dataclass(frozen=True)
class Mechanism:
    """Holds what layer 2 reads and gathers. Positions count from 0; the query is the last token."""

    config: MechanismConfig
    stored: list[list[float]]
    """`stored[token][index]` after layer 1."""
    attention: list[list[float]]
    """`attention[head][token]` of the query in layer 2."""
    gathered: list[list[float]]
    """`gathered[head][index]` for the query after layer 2."""
    source: list[list[int]]
    """The token that most of `gathered[head][index]` comes from; -1 where there is nothing."""
    purity: list[list[float]]
    """The part of it that comes from there: 1 where nothing is mixed."""


def compute(config: MechanismConfig, store: RunStore) -> Mechanism:
    """Read it off the trace of a constructed model on one sequence."""
    rng = torch.Generator().manual_seed(config.seed)
    task = Task(random_transition_matrix(config.num_states, rng=rng), config.lags, config.length)
    trace = construct(task).trace(sequence_of_lag(task, config.true_lag, rng=rng))
    stored = trace.stream("1.1/position")[0]
    attention = trace.attention[1][0, :, -1]
    gathered = torch.stack(
        [trace.stream(f"2.{head + 1}/1.1/position")[0, -1] for head in range(len(attention))]
    )
    parts = attention[:, :, None] * stored  # (head, token, index): who put how much there
    largest, source = parts.max(dim=1)
    there = gathered > 1e-9
    source, purity = torch.where(there, source, -1), torch.where(there, largest / gathered, 1.0)
    return Mechanism(
        config, *(values.tolist() for values in (stored, attention, gathered, source, purity))
    )


EXPERIMENT = Experiment("mechanism", CAPTION, MechanismConfig(), Mechanism, compute)
