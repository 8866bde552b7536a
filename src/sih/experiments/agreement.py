"""How far trained models agree with the construction, in numbers (paper, Sec. 6, "Trained vs constructed ...").

Every model on fresh sequences of its own task; what is measured is in `sih.analysis.distances`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from sih.analysis.distances import KEYS, LAYERS, Agreement, Measured, compare, measured, summary
from sih.analysis.reference_circuit import Reference, run_reference
from sih.experiments.cells import with_error
from sih.experiments.compared import FRESH_SEED
from sih.experiments.experiment import Experiment
from sih.runs.run_store import RunStore
from sih.task import Task, sample

CAPTION = (
    "Share of the third layer's attention on the token that the true lag copies (solid) and on those of all lags "
    "together (dotted), against the position, for the models standard-LAGS and disentangled-LAGS and for the "
    "construction; black, the posterior of the true lag given the sequence so far. Means over fresh sequences of each "
    "model's task, bands one standard error over sequences. Lag 1 copies the query's own token, which the residual "
    "stream holds anyway: there a low share need not mean a wrong choice."
)


@dataclass(frozen=True)
class AgreementConfig:
    models: tuple[str, ...] = (
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
    seed: int = 0


@dataclass(frozen=True)
class Agreements:
    """By the model's name; `seeds` has means over the seeds of one configuration and their standard errors, of a
    correlation without its sign (a first layer may follow log P or its negative, and says as much either way)."""

    config: AgreementConfig
    models: dict[str, Agreement]
    seeds: dict[str, dict[str, Measured]]
    missing: list[str]


def reads(config: AgreementConfig, store: RunStore) -> tuple[str, ...]:
    return config.models


@torch.no_grad()
def compute(config: AgreementConfig, store: RunStore) -> Agreements:
    """Models of the same task see the same sequences, and the construction runs on them once."""
    found_runs, missing = store.finished(config.models)
    runs = list(found_runs.values())
    if not runs:
        raise ValueError(f"none of the models to compare is there: {', '.join(config.models)}")
    references: dict[tuple[Task, int | None], Reference] = {}
    found = {}
    for run in runs:
        heads = run.config.heads[1] if len(run.config.heads) == 3 else None
        same = (run.task, heads)
        if same not in references:
            batch = sample(run.task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
            references[same] = run_reference(run.task, batch, heads)
        trace = run.model.trace(references[same].batch.tokens)
        found[run.name] = compare(trace.attention, trace.scores, references[same])
    return Agreements(config, found, _over_seeds(found), missing)


def _over_seeds(found: dict[str, Agreement]) -> dict[str, dict[str, Measured]]:
    groups: dict[str, list[Agreement]] = {}
    for name, entry in found.items():
        groups.setdefault(re.sub(r"-seed\d+$", "", name), []).append(entry)
    return {
        base: {
            key: measured(torch.tensor([_unsigned(key, summary(entry)[key][0]) for entry in entries]))
            for key in summary(entries[0])
        }
        for base, entries in groups.items()
        if len(entries) > 1
    }


def _unsigned(key: str, value: float) -> float:
    return abs(value) if key.startswith("correlation") else value


def table(data: Agreements) -> list[list[str]]:
    """A row a model, then a row for every configuration with several seeds (errors over seeds there)."""
    keys = [f"correlation, {keys}" for keys in KEYS] + [f"variation, layer {layer}" for layer in LAYERS]
    keys += ["layer 2, by offset", "layer 2, by positions", "parents", "selected", "candidates"]
    rows = [["model", *keys, "posterior", "uniform, layers 1 2 3"]]
    for name, entry in data.models.items():
        numbers = summary(entry)
        flat = " ".join(
            f"{entry.uniform[layer][0]:.2f}".replace("0.", ".") for layer in LAYERS if layer in entry.uniform
        )
        cells = [_cell(numbers[key]) if key in numbers else "" for key in keys]
        rows.append([name, *cells, _cell(entry.shares["posterior"]), flat])
    for base, numbers in data.seeds.items():
        cells = [_cell(numbers[key]) if key in numbers else "" for key in keys]
        rows.append([f"{base}, over seeds", *cells, "", ""])
    return rows


def _cell(value: Measured) -> str:
    return with_error(*value)


EXPERIMENT = Experiment("agreement", CAPTION, AgreementConfig(), Agreements, compute, reads, table)
