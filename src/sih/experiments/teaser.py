"""The task and the circuit at a glance: the paper's Fig. 1."""

from dataclasses import dataclass

import torch

from sih.analysis.reference_circuit import reference_model, sequence_of_lag
from sih.construction import heads_needed
from sih.experiments.attention_maps import Map
from sih.markov import random_transition_matrix
from sih.models.offsets import attention_at
from sih.results.experiment import Experiment, Seeded
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "Top: interleaved Markov chains, a sequence of each lag; arrows lead from a token's parent to it, shades tell the "
    "interleaved chains apart, tokens without an arrow come from the stationary law. Middle: the task, to predict the "
    "next token of a sequence whose lag is not told; the numbers are the weights that the construction gives the "
    "candidates. Bottom: its attention on that sequence, a layer a map (query down, key across; darker is more, "
    "relative to the query's largest)."
)


@dataclass(frozen=True)
class TeaserConfig(Seeded):
    lags: tuple[int, ...] = (1, 2)
    true_lag: int = 2
    num_states: int = 4
    concentration: float = 0.4
    """Of the rows of P: small enough that a few tokens tell the lags apart."""
    length: int = 32
    shown: int = 16
    """Tokens drawn one by one."""


@dataclass(frozen=True)
class Teaser:
    """Holds sequences, as states from 0, and the construction's attention on the last of them.

    `examples` has one for each lag. `weights`, at the last token shown, has one for each lag too.
    """

    config: TeaserConfig
    examples: list[list[int]]
    tokens: list[int]
    weights: list[float]
    maps: list[Map]
    """Of the first head of each layer."""
    heads: list[int]


def compute(config: TeaserConfig, store: RunStore) -> Teaser:
    """Draw sequences of every lag, and run the construction on one more."""
    rng = torch.Generator().manual_seed(config.seed)
    P = random_transition_matrix(config.num_states, concentration=config.concentration, rng=rng)
    task = Task(P, config.lags, config.length)
    if not task.max_lag <= config.shown <= config.length:
        raise ValueError(
            f"shown is between the largest lag and the length of {config.length}; got {config.shown}"
        )
    examples = [sequence_of_lag(task, k, rng=rng)[0, : config.shown].tolist() for k in config.lags]
    tokens = sequence_of_lag(task, config.true_lag, rng=rng)
    model = reference_model(task, heads_needed(config.lags))
    attention = model.trace(tokens).attention
    weights = attention_at(attention[-1][:, 0], [k - 1 for k in config.lags])[
        0, config.shown - 1
    ].tolist()
    maps = [layer[0, 0].tolist() for layer in attention]
    return Teaser(config, examples, tokens[0].tolist(), weights, maps, list(model.config.heads))


EXPERIMENT = Experiment("teaser", CAPTION, TeaserConfig(), Teaser, compute)
