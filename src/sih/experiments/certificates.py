r"""Do the weights compute what the paper says? Every layer of a circuit against its closed form, for several lag sets.

Prop. 1 (Sec. 5.1) with the mask form of the third layer, its positional form (App. F), lag sets that are not contiguous
(App. G), two lags with a single head (App. H), and our Bayes-optimal circuit, all as float64 weights on sequences of
the task and adversarial ones (`sih.verify`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from sih.construction import construct, verify
from sih.experiments.cells import braces
from sih.experiments.experiment import Experiment
from sih.markov import random_transition_matrix
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "Largest difference between what constructed weights compute (attention of every layer, stored evidence, "
    "prediction) and the closed form of their circuit, in float64, over matrices with Dirichlet(1) rows, sequences of "
    "the task and adversarial ones, at every position that is claimed. For the Bayes-optimal circuit also the largest "
    "difference of an attention weight from the exact posterior of the lag. No models are trained."
)

CIRCUITS: dict[str, dict[str, Any]] = {
    "Prop. 1, third layer by masks": {"third": "mask"},
    "third layer by positions": {"third": "position"},
    "two lags, 1 head": {"target": "two-lags"},
    "Bayes-optimal": {"target": "bayes"},
}
POSTERIOR = "Bayes-optimal, from the posterior"


@dataclass(frozen=True)
class CertificatesConfig:
    lag_sets: tuple[tuple[int, ...], ...] = (
        *((1, 2, 3), (2, 3, 4), (1, 2, 3, 4, 5)),
        *((1, 3), (2, 5), (1, 3, 4), (3, 5, 7), (1, 2, 4, 8)),
    )
    num_states: int = 5
    length: int = 64
    lam: float = 500.0
    beta: float = 100.0
    matrices: int = 2
    sequences: int = 8
    seed: int = 0


@dataclass(frozen=True)
class CertificateErrors:
    """`error[lag set][circuit]`, the largest over matrices; a circuit that the lags do not allow is not there."""

    config: CertificatesConfig
    heads: list[int]
    error: list[dict[str, float]]


def compute(config: CertificatesConfig, store: RunStore) -> CertificateErrors:
    heads, errors = [], []
    for lags in config.lag_sets:
        rng = torch.Generator().manual_seed(config.seed)
        worst: dict[str, float] = {}
        for _ in range(config.matrices):
            task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
            contiguous = lags[-1] - lags[0] + 1 == len(lags)
            for name, options in CIRCUITS.items():
                if ("mask" in options.values() and not contiguous) or (
                    "two-lags" in options.values() and len(lags) != 2
                ):
                    continue
                lam, beta = (None, None) if "bayes" in options.values() else (config.lam, config.beta)
                model = construct(task, lam=lam, beta=beta, **options)
                found = verify(model, task, size=config.sequences, rng=rng)
                worst[name] = max(worst.get(name, 0.0), found.max_error)
                if found.posterior_error is not None:
                    worst[POSTERIOR] = max(worst.get(POSTERIOR, 0.0), found.posterior_error)
                if name == "third layer by positions":
                    least = model.circuit.heads
        heads.append(least)
        errors.append(worst)
    return CertificateErrors(config, heads, errors)


def table(data: CertificateErrors) -> list[list[str]]:
    rows = [["circuit", *(braces(lags) for lags in data.config.lag_sets)]]
    for name in (*CIRCUITS, POSTERIOR):
        rows.append([name, *(f"{error[name]:.1e}" if name in error else "" for error in data.error)])
    return rows


def largest(data: CertificateErrors, circuit: str) -> tuple[float, list[tuple[tuple[int, ...], float]]]:
    """Over the lag sets that allow the circuit, and for each of them."""
    found = [(lags, e[circuit]) for lags, e in zip(data.config.lag_sets, data.error, strict=True) if circuit in e]
    return max((error for _, error in found), default=math.nan), found


EXPERIMENT = Experiment("certificates", CAPTION, CertificatesConfig(), CertificateErrors, compute, table=table)
