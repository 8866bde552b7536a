"""Predictors that assume one lag, if the lag switches: KL around a switch, and against
the rate.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.record import Size
from sih.base.stats import Estimate, estimate
from sih.base.types import Law, TokenTensor
from sih.circuits import construct
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.predictors.predictors import bma
from sih.results.beside import circuit_law, trained_law
from sih.results.curves import Pair
from sih.results.experiment import Experiment, Lags, Seeded, Several, States, named_models
from sih.task import Batch, ParentsTask, SwitchingTask, Task, sample
from sih.task.matrices import random_transition_matrix
from sih.training.runs.run_store import RunStore

FILTER, ONE_LAG, PAPER, BAYES = (
    "exact filter",
    "BMA, one lag",
    "the paper's circuit",
    "Bayes-optimal circuit",
)


@dataclass(frozen=True)
class SwitchingConfig(Seeded):
    rates: tuple[float, ...] = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    switch_at: int = 64
    """The first token of the new lag."""
    models: tuple[str, ...] = ("standard-1.2.3", "disentangled-1.2.3")
    lags: Lags = (1, 2, 3)
    num_states: States = 5
    length: Size = 128
    """Length of the sequences; and, with lags and states, the task if no model defines
    one."""
    sequences: Several = 512


@dataclass(frozen=True, eq=False)
class SwitchingLags:
    """Mean KL by position of sequences with one switch, and by rate: means over
    sequences with errors.
    """

    config: SwitchingConfig
    along: dict[str, Float[Tensor, " position"]]
    by_rate: dict[str, tuple[Pair, ...]]
    missing: tuple[str, ...]


def compute(config: SwitchingConfig, store: RunStore) -> SwitchingLags:
    """Return the KL of every predictor on the same sequences, with the matrix of the
    models' training.
    """
    runs, missing = store.finished(config.models)
    tasks = [run.task for run in runs.values()]
    rng = config.rng()
    P = tasks[0].P if tasks else random_transition_matrix(config.num_states, rng=rng)
    task = Task(P, config.lags, config.length)
    if any(not other.same_chains(task) for other in tasks):
        raise ValueError(
            f"the models {', '.join(config.models)} must have been trained on one task"
        )

    def laws(tokens: TokenTensor, rate: float) -> dict[str, Law]:
        found = {
            FILTER: bma(tokens, SwitchingTask(P, task.lags, task.length, rate)),
            ONE_LAG: bma(tokens, task),
        }
        circuits = {PAPER: construct(task), BAYES: construct(task, target="bayes")}
        found |= {name: circuit_law(model, tokens, task) for name, model in circuits.items()}
        return found | {name: trained_law(run, tokens) for name, run in runs.items()}

    once = one_switch(task, config.switch_at)
    batch = sample(once, config.sequences, rng=rng)
    found = laws(batch.tokens, 1 / config.switch_at)
    along = {name: kl_to_truth(law, batch, once)[:, :-1].mean(dim=0) for name, law in found.items()}
    by_rate: dict[str, list[Pair]] = {}
    for rate in config.rates:
        switching = SwitchingTask(P, task.lags, task.length, rate)
        batch = sample(switching, config.sequences, rng=rng)
        for name, law in laws(batch.tokens, rate).items():
            by_rate.setdefault(name, []).append(_mean(law, batch, switching).pair())
    rates = {name: tuple(pairs) for name, pairs in by_rate.items()}
    return SwitchingLags(config, along, rates, tuple(missing))


def one_switch(task: Task, at: int) -> ParentsTask:
    """Return the task with pairs of lags as hypotheses: the first until token `at`, the
    second from it on.
    """
    parents = task.parents(task.length + 1)
    late = torch.arange(task.length + 1) >= at
    pairs = itertools.permutations(range(len(task.lags)), 2)
    return ParentsTask(
        task.P,
        torch.stack([torch.where(late, parents[b], parents[a]) for a, b in pairs]),
        task.length,
    )


def _mean(law: Law, batch: Batch, task: SwitchingTask) -> Estimate[torch.Tensor]:
    return estimate(mean_kl(kl_to_truth(law, batch, task), task))


EXPERIMENT = Experiment(
    "switching",
    SwitchingConfig(),
    SwitchingLags,
    compute,
    named_models,
    beyond=True,
)
