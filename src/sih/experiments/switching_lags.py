"""What becomes of those who assume one lag when the lag switches: KL around a switch, and against the rate."""

import itertools
from dataclasses import dataclass

import torch

from sih.construction import construct
from sih.markov import Law, TokenTensor, random_transition_matrix
from sih.metrics import kl_to_truth, mean_kl
from sih.predictors import bma
from sih.results.beside import circuit_law, trained_law
from sih.results.experiment import Experiment, Rows, named_models
from sih.runs.run_store import RunStore
from sih.stats import Estimate, estimate
from sih.task import Batch, ParentsTask, SwitchingTask, Task, sample

CAPTION = (
    "Where the lag switches (lags {1, 2, 3}, 5 states, T = 128). Left: KL divergence from the true next-token law "
    "along sequences whose lag switches once, at token 64, to one of the others. Right: mean KL past the largest lag "
    "against the chance that the lag switches at each token, on one matrix, with one standard error over sequences. "
    "The filter is the exact Bayes predictor at the true rate (left: at 1/64). All others assume one lag: BMA, the "
    "paper's circuit, the Bayes-optimal circuit, and shipped models, trained with our recipes (layers restricted to "
    "their roles or frozen at first) on this matrix with lags that stay."
)
FILTER, ONE_LAG, PAPER, BAYES = (
    "exact filter",
    "BMA, one lag",
    "the paper's circuit",
    "Bayes-optimal circuit",
)


@dataclass(frozen=True)
class SwitchingConfig:
    rates: tuple[float, ...] = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
    switch_at: int = 64
    """the first token of the new lag."""
    models: tuple[str, ...] = ("standard-1.2.3", "disentangled-1.2.3")
    lags: tuple[int, ...] = (1, 2, 3)
    num_states: int = 5
    length: int = 128
    """of sequences and, with the lags and states, of the task where no model is there to have one."""
    sequences: int = 512
    seed: int = 0


@dataclass(frozen=True)
class SwitchingLags:
    """Holds mean KL by position of sequences with one switch, and by rate: means over sequences and their errors."""

    config: SwitchingConfig
    along: dict[str, list[float]]
    by_rate: dict[str, list[tuple[float, float]]]
    missing: list[str]


def compute(config: SwitchingConfig, store: RunStore) -> SwitchingLags:
    """Measure everyone on the same sequences of the matrix that the models were trained on."""
    runs, missing = store.finished(config.models)
    tasks = [run.task for run in runs.values()]
    rng = torch.Generator().manual_seed(config.seed)
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
    along = {
        name: kl_to_truth(law, batch, once)[:, :-1].mean(dim=0).tolist()
        for name, law in found.items()
    }
    by_rate: dict[str, list[tuple[float, float]]] = {}
    for rate in config.rates:
        switching = SwitchingTask(P, task.lags, task.length, rate)
        batch = sample(switching, config.sequences, rng=rng)
        for name, law in laws(batch.tokens, rate).items():
            by_rate.setdefault(name, []).append(_mean(law, batch, switching).pair())
    return SwitchingLags(config, along, by_rate, missing)


def one_switch(task: Task, at: int) -> ParentsTask:
    """Make the task whose hypotheses are pairs of lags, the first until token `at`, the second from it on."""
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


def table(data: SwitchingLags) -> Rows:
    """Make a row for each predictor: mean KL at each rate."""
    rows = [["", *(f"rate {rate:g}" for rate in data.config.rates)]]
    return rows + [
        [name, *(f"{kl:.4f}±{error:.4f}" for kl, error in found)]
        for name, found in data.by_rate.items()
    ]


EXPERIMENT = Experiment(
    "switching",
    CAPTION,
    SwitchingConfig(),
    SwitchingLags,
    compute,
    named_models,
    table=table,
    beyond=True,
)
