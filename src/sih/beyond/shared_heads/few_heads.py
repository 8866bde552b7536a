"""KL relative to Bayes against the number of second-layer heads: the paper's form,
unmixed, mixed, and trained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sih.base.record import Size
from sih.base.stats import estimate
from sih.base.types import Law, TokenTensor
from sih.beyond.shared_heads.exact import exact_heads
from sih.circuits import circuit_weights, construct
from sih.heads import head_offsets, least_heads
from sih.predictors.evidence import mixture
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.predictors.predictors import bma, maximum_likelihood
from sih.results.beside import circuit_law, trained_law
from sih.results.experiment import Experiment, LagSets, Seeded, Several, States
from sih.results.models import Models, shipped_models
from sih.task import Batch, Task, sample
from sih.task.matrices import random_transition_matrix
from sih.training.runs.run_store import RunStore

PAPER, UNMIXED, EXACT, BOTH, TRAINED, ML = (
    "the paper's form", "nothing mixed", "mixed, exact", "mixed, both sides", "trained", "ML",
)  # fmt: skip


@dataclass(frozen=True)
class FewHeadsConfig(Seeded):
    lag_sets: LagSets = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5))
    num_states: States = 5
    length: Size = 128
    matrices: Several = 12
    sequences: Size = 128
    models: tuple[str, ...] = ()
    """Names of models. Default: all shipped models that are `CHOSEN`, for these lag
    sets."""


CHOSEN = Models("standard", "SOAP", usual_width=True)
"""The models compared: those with one kind of training, at the length of the circuits."""


@dataclass(frozen=True)
class Point:
    """KL over BMA's: a mean over matrices with its standard error (0 for one trained
    model).
    """

    lags: tuple[int, ...]
    series: str
    heads: int
    mean: float
    error: float


@dataclass(frozen=True)
class FewHeads:
    """One point per form and number of heads; maximum likelihood has number 0."""

    config: FewHeadsConfig
    points: tuple[Point, ...]


def reads(config: FewHeadsConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models that are `CHOSEN`."""
    chosen = shipped_models(*(replace(CHOSEN, lags=lags) for lags in config.lag_sets))
    return config.models or tuple(
        name for name, one in chosen.items() if one.length == config.length
    )


def compute(config: FewHeadsConfig, store: RunStore) -> FewHeads:
    """Return the KL of every form on the same sequences of each matrix, and of trained
    models on their task.
    """
    circuits = [point for lags in config.lag_sets for point in _points(config, lags)]
    return FewHeads(config, (*circuits, *_trained(config, store)))


def _points(config: FewHeadsConfig, lags: tuple[int, ...]) -> Iterator[Point]:
    found: dict[tuple[str, int], list[float]] = {}
    rng = config.rng()
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        batch = sample(task, config.sequences, rng=rng)
        best = _mean(bma(batch.tokens, task), batch, task)
        for where, law in _laws(batch.tokens, task):
            found.setdefault(where, []).append(_mean(law, batch, task) / best)
    for (series, heads), ratios in found.items():
        ratio = estimate(ratios)
        yield Point(lags, series, heads, ratio.mean.item(), ratio.error.item())


def _laws(tokens: TokenTensor, task: Task) -> Iterator[tuple[tuple[str, int], Law]]:
    """Return the predictions of every form, with every number of heads."""
    yield (ML, 0), maximum_likelihood(tokens, task)
    enough, exact = least_heads(task.lags).heads, exact_heads(task.lags).upper
    apart = construct(task, target="bayes", heads=enough).circuit
    for heads in range(1, enough + 1):
        yield (
            (PAPER, heads),
            circuit_law(construct(task, heads=heads, third="position"), tokens, task),
        )
        some = replace(apart, head_of_offset=head_offsets(task.lags, heads).colours)
        yield (UNMIXED, heads), mixture(circuit_weights(tokens, task, some), tokens, task)
    for heads in range(1, exact + 1):
        series, reading = (EXACT, "query") if heads == exact else (BOTH, "both")
        circuit = construct(task, target="bayes", heads=heads, reading=reading).circuit
        yield (series, heads), mixture(circuit_weights(tokens, task, circuit), tokens, task)


def _trained(config: FewHeadsConfig, store: RunStore) -> Iterator[Point]:
    for run in store.finished(reads(config, store))[0].values():
        batch = sample(run.task, config.sequences, rng=config.seed)
        ours, best = trained_law(run, batch.tokens), bma(batch.tokens, run.task)
        ratio = _mean(ours, batch, run.task) / _mean(best, batch, run.task)
        yield Point(run.task.lags, TRAINED, run.config.heads[1], ratio, 0.0)


def _mean(law: Law, batch: Batch, task: Task) -> float:
    return mean_kl(kl_to_truth(law, batch, task), task).mean().item()


EXPERIMENT = Experiment(
    "few_heads",
    FewHeadsConfig(),
    FewHeads,
    compute,
    reads,
    beyond=True,
    shipped=True,
)
