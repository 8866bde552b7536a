"""Check of weights against the paper: each layer of a circuit against its closed form,
for several lag sets.

The circuits are Prop. 1 (Sec. 5.1) with the third layer by masks or positions (App. F),
lags that are not contiguous (App. G), two lags with a single head (App. H), and the
Bayes-optimal circuit of this package.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sih.base.record import Size
from sih.circuits import construct, verify
from sih.models.offsets import attention_at
from sih.paper.over_matrices import MatricesConfig
from sih.predictors.predictors import selective_weights
from sih.results.beside import Strengths
from sih.results.experiment import Experiment, LagSets, MatrixLaw
from sih.task import Task, sample
from sih.task.matrices import random_transition_matrix

MASKS, POSITIONS, TWO_LAGS = (
    "Prop. 1, third layer by masks",
    "third layer by positions",
    "two lags, 1 head",
)

BAYES, POSTERIOR = "Bayes-optimal", "Bayes-optimal, from the posterior"

PRINTED_SINK, PRINTED, PRINTED_LATE = (
    "Eq. (3), with a sink",
    "Eq. (3), without a sink",
    "Eq. (3), without, last half",
)


@dataclass(frozen=True)
class CertificatesConfig(MatricesConfig, Strengths):
    lag_sets: LagSets = (
        *((1, 2, 3), (2, 3, 4), (1, 2, 3, 4, 5)),
        *((1, 3), (2, 5), (1, 3, 4), (3, 5, 7), (1, 2, 4, 8)),
    )
    length: Size = 64
    matrices: Size = 2
    sequences: Size = 8
    laws: tuple[MatrixLaw, ...] = ("dirichlet",)


@dataclass(frozen=True)
class CertificateErrors:
    """Largest errors over matrices, `error[lag set][circuit]`, of the circuits that the
    lags allow.
    """

    config: CertificatesConfig
    heads: tuple[int, ...]
    error: tuple[dict[str, float], ...]


def compute(config: CertificatesConfig, store: object) -> CertificateErrors:
    """Return the errors of each circuit for some matrices, on sequences of the task and
    adversarial ones.
    """
    found = [_worst(config, lags) for lags in config.lag_sets]
    heads, worst = zip(*found, strict=True)
    return CertificateErrors(config, heads, worst)


def _worst(config: CertificatesConfig, lags: tuple[int, ...]) -> tuple[int, dict[str, float]]:
    """Return the least heads of a lag set, and the largest error of each circuit."""
    rng = config.rng()
    heads, errors = 0, []
    for law in config.laws * config.matrices:
        P = random_transition_matrix(config.num_states, rng=rng, law=law)
        task = Task(P, lags, config.length)
        for name, options in _circuits(config, lags).items():
            model = construct(task, **options)
            found = verify(model, task, size=config.sequences, rng=rng)
            errors.append((name, found.max_error))
            if found.posterior_error is not None:
                errors.append((POSTERIOR, found.posterior_error))
            if name == POSITIONS:
                heads = model.circuit.heads
        if MASKS in _circuits(config, lags):
            errors += from_equation_3(config, task)
    names = dict.fromkeys(name for name, _ in errors)
    return heads, {name: max(error for other, error in errors if other == name) for name in names}


@torch.no_grad()
def from_equation_3(config: CertificatesConfig, task: Task) -> list[tuple[str, float]]:
    r"""Return how far the third layer's weights are from Eq. (3), $w_{i,k} \propto
    \exp(\frac{\beta}{i - \hat k} \sum_{i'} \tilde p_{i',k})$, past the first max_lag
    positions, over the sequences of the task.
    """
    tokens = sample(task, config.sequences, rng=config.seed + 1).tokens
    wanted = selective_weights(tokens, task, beta=config.beta, evidence="mean")
    found = []
    for name, sink in ((PRINTED_SINK, True), (PRINTED, False)):
        model = construct(task, lam=config.lam, beta=config.beta, sink=sink)
        attention = model.trace(tokens)["3.1/attention"]
        gap = (
            (attention_at(attention, [lag - 1 for lag in task.lags]) - wanted)
            .abs()
            .amax(dim=(0, 2))
        )
        found.append((name, gap[task.max_lag :].max().item()))
        if not sink:
            found.append((PRINTED_LATE, gap[task.length // 2 :].max().item()))
    return found


def _circuits(config: CertificatesConfig, lags: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """Return the circuits that the lags allow, as options of `construct`. The
    Bayes-optimal one chooses its strengths.
    """
    strengths = {"lam": config.lam, "beta": config.beta}
    masks = {MASKS: {"third": "mask", **strengths}} if lags[-1] - lags[0] + 1 == len(lags) else {}
    two = {TWO_LAGS: {"target": "two-lags", **strengths}} if len(lags) == 2 else {}
    return {
        **masks,
        POSITIONS: {"third": "position", **strengths},
        **two,
        BAYES: {"target": "bayes"},
    }


EXPERIMENT = Experiment("certificates", CertificatesConfig(), CertificateErrors, compute)
