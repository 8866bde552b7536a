"""How far trained models agree with the construction (Sec. 6), in the numbers of `sih.analysis.distances`."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.analysis.distances import KEYS, Agreement, Measured, compare, measured, summary
from sih.analysis.reference_circuit import Reference, run_reference
from sih.experiments.compared import FRESH_SEED, by_seeds, usual_heads
from sih.experiments.curves import Compared
from sih.experiments.experiment import Experiment, Rows, Seeded, named_models, with_error
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Task, sample

CAPTION = (
    "Share of the third layer's attention on the token that the true lag copies (solid) and on those of all lags "
    "together (dotted), against the position, for models trained as the paper trains (at length 32, and {1,2,3} at 64 "
    "and 128 too; two seeds at 32 and 64) or with our recipe, a curve for each model, and for the construction; black, "
    "the posterior of the true lag given the sequence so far. Means over fresh sequences of each model's task, bands "
    "one standard error over sequences. Lag 1 copies the query's own token, which the residual stream holds anyway: "
    "there a low share need not mean a wrong choice."
)


@dataclass(frozen=True)
class AgreementConfig(Seeded):
    models: tuple[str, ...] = (
        *("paper-1.2.3-length32", "paper-1.2.3", "paper-1.3.4-length32", "paper-3.5.7-length32", "paper-1.2-length32"),
        *("paper-1.2.3.4.5-length32", "paper-1.3-length32", "paper-1.2.3-length32-seed1"),
        *("paper-1.2.3-length64", "paper-1.2.3-length64-seed1"),
        *("paper-disentangled-1.2.3-length32", "paper-disentangled-3.5.7-length32"),
        *("standard-1.2.3", "standard-1.2.3-seed1", "standard-1.2.3-seed2", "standard-1.3.4", "standard-1.2.3.4.5"),
        *("standard-1.3", "standard-3.5.7", "standard-1.2", "standard-1.2.3-dim128"),
        *("disentangled-1.2.3", "disentangled-1.3.4", "disentangled-1.2.3.4.5", "disentangled-1.3"),
        *("disentangled-3.5.7", "disentangled-1.2"),
        *("standard-1.2.3-1.1.1", "standard-1.2.3.4.5-1.1.1", "standard-1.2.3.4.5-1.2.1"),
        *("standard-1.2.3.4.5-1.3.1", "standard-1.2.3.4.5-1.7.1"),
        *("standard-1.2.3-1.1", "standard-1.2.3-1.3", "standard-1.2.3-3.1", "standard-1.2.3-3.3"),
        *("standard-1.2.3-1.3.1.1", "standard-1.2.3-1.3.1.1.1"),
    )
    sequences: int = 64


UNSIGNED = tuple(f"correlation, {keys}" for keys in KEYS)
"""Of these seeds are averaged without the sign: a first layer may follow log P or its negative, and says as much."""


@dataclass(frozen=True)
class Agreements:
    """Holds what was measured of each model, by its name, and what each is.

    `seeds` has means over the seeds of one configuration, by the name of the first, and their standard errors.
    """

    config: AgreementConfig
    compared: dict[str, Compared]
    models: dict[str, Agreement]
    seeds: dict[str, dict[str, Measured]]
    missing: list[str]

    def with_usual_heads(self, plain: bool) -> dict[str, Agreement]:
        """Select the models of the usual width and heads, trained as the paper trains (`plain`) or with our recipe."""
        each = [(name, of, self.models[name]) for name, of in self.compared.items() if of.plain == plain]
        return {name: m for name, of, m in each if of.dim is None and of.heads == usual_heads(m.lags)}


@torch.no_grad()
def compute(config: AgreementConfig, store: RunStore) -> Agreements:
    """Compare each model with the construction, which runs once on the sequences that models of one task share."""
    runs, missing = store.finished(config.models)
    if not runs:
        raise ValueError(f"none of the models to compare is there: {', '.join(config.models)}")
    references: dict[tuple[Task, int | None], Reference] = {}
    found = {}
    for run in runs.values():
        heads = run.config.heads[1] if len(run.config.heads) == 3 else None
        if (run.task, heads) not in references:
            batch = sample(run.task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
            references[run.task, heads] = run_reference(run.task, batch, heads)
        built = references[run.task, heads]
        trace = run.model.trace(built.batch.tokens)
        found[run.name] = compare(trace.attention, trace.scores, built)
    compared = {name: one for name, run in runs.items() for one in by_seeds([run])}
    return Agreements(config, compared, found, _over_seeds(list(runs.values()), found), missing)


def _over_seeds(runs: list[Run], found: dict[str, Agreement]) -> dict[str, dict[str, Measured]]:
    means = {}
    for task in dict.fromkeys(run.task for run in runs):
        for group in by_seeds(run for run in runs if run.task == task).values():
            if len(group) > 1:
                each = [summary(found[run.name]) for run in group]
                means[group[0].name] = {key: measured(_values(key, each)) for key in each[0]}
    return means


def _values(key: str, each: list[dict[str, Measured]]) -> Float[Tensor, " seed"]:
    values = torch.tensor([numbers[key][0] for numbers in each])
    return values.abs() if key in UNSIGNED else values


def table(data: Agreements) -> Rows:
    """Make one row for each model, then one for every configuration with several seeds (errors over seeds there)."""
    each = {name: summary(found) for name, found in data.models.items()}
    keys = list(dict.fromkeys(key for numbers in each.values() for key in numbers))
    rows = [["model", *keys, "posterior", "uniform, layers 1 2 3"]]
    for name, found in data.models.items():
        flat = [f"{value:.2f}".replace("0.", ".") for value, _ in found.uniform.values()]
        rows.append([name, *_cells(keys, each[name]), with_error(*found.shares["posterior"]), " ".join(flat)])
    for name, numbers in data.seeds.items():
        rows.append([f"{name}, over seeds", *_cells(keys, numbers), "", ""])
    return rows


def _cells(keys: list[str], numbers: dict[str, Measured]) -> list[str]:
    return [with_error(*numbers[key]) if key in numbers else "" for key in keys]


EXPERIMENT = Experiment("agreement", CAPTION, AgreementConfig(), Agreements, compute, named_models, table)
