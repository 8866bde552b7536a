"""What is compared on a batch: the reference predictors, circuits written by hand, trained models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.construction import circuit_weights, construct
from sih.evidence import mixture
from sih.metrics import kl_to_truth
from sih.models.disentangled.dense import DisentangledTransformer
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Batch, Task

CIRCUITS: dict[str, dict[str, Any]] = {
    "construction": {},
    "construction, 1 head": {"heads": 1, "third": "position"},
    "two lags, 1 head": {"target": "two-lags"},
    "Bayes-optimal construction": {"target": "bayes"},
}
"""Options of `construct`, by the name in figures."""
FRESH_SEED = 2**31
"""Added to a configuration's seed: far from the seeds of training and of its held-out sequences. (On a CPU torch takes
a seed modulo 2^32: a larger number would be no other seed than a small one.)"""
CHUNK = 64
"""Sequences a model predicts at once: more of them do not go faster and need the memory."""


def circuits_for(task: Task, *, lam: float = 500.0, beta: float = 100.0) -> dict[str, DisentangledTransformer]:
    """Every circuit of `CIRCUITS` that the lags allow, at the paper's strengths; the Bayes-optimal one sets its own."""
    strengths = {"lam": lam, "beta": beta}
    return {
        name: construct(task, **(options if options.get("target") == "bayes" else strengths | options))
        for name, options in CIRCUITS.items()
        if options.get("target") != "two-lags" or len(task.lags) == 2
    }


def circuit_law(
    model: DisentangledTransformer, tokens: Int[Tensor, "batch time"], task: Task
) -> Float[Tensor, "batch time state"]:
    """What the circuit's weights predict, some hundred times faster than by running them throughout.

    From `circuit.first_exact_position` on the weights equal their closed form up to rounding (`sih verify`). Before it
    they do not (docs/errata.md, 4), so there they are run: on the first few tokens, since they look only backwards.
    """
    first = min(model.circuit.first_exact_position, tokens.shape[1])
    law = mixture(circuit_weights(tokens, task, model.circuit), tokens, task)
    if first:
        with torch.no_grad():
            law[:, :first] = model.predict(tokens[:, :first]).to(law)
    return law


def trained_law(run: Run, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time state"]:
    """What a trained model predicts."""
    with torch.no_grad():
        return torch.cat([run.model.predict(part) for part in tokens.split(CHUNK)])


def scored(law: Float[Tensor, "batch time state"], batch: Batch, task: Task) -> Float[Tensor, "batch scored"]:
    """KL to the truth at every position but the last: it has no next token in the sequence, so that no model is
    trained there (a learned position of its own is what it began with), and none is judged there."""
    return kl_to_truth(law, batch, task)[:, :-1]


def with_seeds(names: Iterable[str], store: RunStore) -> tuple[str, ...]:
    """The names, each followed by those of further seeds of it that are in the store: NAME-seed1 and so on."""
    known = store.names()
    found = [[name, *(other for other in known if other.startswith(f"{name}-seed"))] for name in names]
    return tuple(dict.fromkeys(name for group in found for name in group))


def grouped(runs: Iterable[Run], name_of: Callable[[Run], str]) -> dict[str, list[Run]]:
    """Runs that share a name, the seeds of one curve, in the order in which they come."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(name_of(run), []).append(run)
    return groups
