"""Agreement of trained models with the construction (Sec. 6), in the distances of
`sih.attention.distances`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.distances import (
    KEYS,
    Agreement,
    Measured,
    Selection,
    compare,
    measured,
    selection,
    summary,
)
from sih.attention.reference_circuit import Reference, run_reference
from sih.results.beside import by_seeds
from sih.results.experiment import Experiment, Seeded
from sih.results.models import Models, TrainedModel, described, shipped_models
from sih.task import Task, sample
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

CHOSEN = (Models(),)
"""The models compared: every model of three layers."""


@dataclass(frozen=True)
class AgreementConfig(Seeded):
    models: tuple[str, ...] = ()
    """Names of models. Default: all shipped models of three layers."""
    sequences: int = 64
    selection_sequences: int = 512
    """Sequences on which a model trained as in the paper is tested for a selective
    head."""


UNSIGNED = tuple(f"correlation, {keys}" for keys in KEYS)
"""For these seeds the sign is dropped before averaging: a first layer may follow log P
or its negative."""


@dataclass(frozen=True, eq=False)
class Agreements:
    """Measurements of each model by its name, with a description of the model.

    `seeds` has means over the seeds of one configuration, by the name of the first,
    with standard errors.

    `seeds` has means over the seeds of one configuration, by the name of the first, and
    their standard errors.
    """

    config: AgreementConfig
    facts: dict[str, TrainedModel]
    models: dict[str, Agreement]
    selection: dict[str, Selection]
    """The last layer's share on the true lag, relative to the posterior's. It is
    measured on `selection_sequences` for models trained as in the paper, as in
    `sih runs show`, and on `sequences` for others."""
    seeds: dict[str, dict[str, Measured]]
    missing: tuple[str, ...]


def reads(config: AgreementConfig, store: RunStore) -> tuple[str, ...]:
    """Return the names in the configuration, or all shipped models that are `CHOSEN`."""
    return config.models or tuple(shipped_models(*CHOSEN))


@torch.no_grad()
def compute(config: AgreementConfig, store: RunStore) -> Agreements:
    """Return the comparison of each model with the construction, which runs once per
    task.
    """
    runs, missing = store.finished(reads(config, store))
    if not runs:
        raise ValueError(f"none of the models to compare is there: {', '.join(config.models)}")
    facts = described(runs.values())
    references: dict[tuple[Task, int | None], Reference] = {}
    found, selections = {}, {}
    for run in runs.values():
        heads = run.config.heads[1] if len(run.config.heads) == 3 else None
        if (run.task, heads) not in references:
            batch = sample(
                run.task,
                config.sequences,
                rng=config.fresh_rng(),
            )
            references[run.task, heads] = run_reference(run.task, batch, heads)
        built = references[run.task, heads]
        trace = run.model.trace(built.batch.tokens)
        scores = [layer[..., trace.first :, trace.first :] for layer in trace.scores]
        found[run.name] = compare(trace.between_tokens, scores, built)
        selections[run.name] = found[run.name].selection
        if facts[run.name].training == "paper":
            selections[run.name] = selection(
                run.model, run.task, sample(run.task, config.selection_sequences, rng=0)
            )
    return Agreements(
        config, facts, found, selections, _over_seeds(list(runs.values()), found), tuple(missing)
    )


def _over_seeds(runs: list[Run], found: dict[str, Agreement]) -> dict[str, dict[str, Measured]]:
    means = {}
    for group in by_seeds(runs).values():
        if len(group) > 1:
            each = [summary(found[run.name]) for run in group]
            means[group[0].name] = {key: measured(_values(key, each)) for key in each[0]}
    return means


def _values(key: str, each: list[dict[str, Measured]]) -> Float[Tensor, " seed"]:
    values = torch.tensor([numbers[key][0] for numbers in each], dtype=torch.float64)
    return values.abs() if key in UNSIGNED else values


EXPERIMENT = Experiment("agreement", AgreementConfig(), Agreements, compute, reads, shipped=True)
