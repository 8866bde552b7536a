r"""KL to the truth against $\beta$ at several lengths: the paper's Fig. 3 (right), where large beta matches ML.

With mean evidence a fixed $\beta$ bounds the weights; with the sum the best $\beta$ is small and nearly the same at
every length. BMA and ML do not depend on $\beta$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.stats import estimate, paired
from sih.predictors.evidence import mixture
from sih.predictors.metrics import kl_to_truth
from sih.predictors.predictors import (
    Evidence,
    bma,
    maximum_likelihood,
    selective_evidence,
    weights_of,
)
from sih.results.experiment import Experiment, Seeded
from sih.task import Batch, Task, sample
from sih.task.matrices import random_transition_matrix

EVIDENCES: tuple[Evidence, Evidence] = ("mean", "sum")


@dataclass(frozen=True)
class BetaConfig(Seeded):
    num_states: int = 5
    lags: tuple[int, ...] = (1, 2, 3)
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    betas: tuple[float, ...] = tuple(float(f"{10 ** (e / 4):.4g}") for e in range(-4, 17, 2))
    matrices: int = 8
    sequences: int = 3000


@dataclass(frozen=True, eq=False)
class BetaCurves:
    """Holds mean KL at the last position of each length over sequences and matrices, with errors over matrices.

    `selective[evidence][length][beta]`; `limit[length]` is beta = infinity, the largest evidence taken outright;
    `minus_ml[length]` is the KL of that limit minus that of ML, matrix by matrix.
    """

    config: BetaConfig
    selective: dict[str, Float[Tensor, "length beta"]]
    selective_error: dict[str, Float[Tensor, "length beta"]]
    limit: Float[Tensor, " length"]
    bma: Float[Tensor, " length"]
    ml: Float[Tensor, " length"]
    ml_error: Float[Tensor, " length"]
    minus_ml: Float[Tensor, " length"]
    minus_ml_error: Float[Tensor, " length"]


def compute(config: BetaConfig, store: object) -> BetaCurves:
    """Show every predictor the same sequences: those of the greatest length, cut to the shorter ones."""
    rng = config.rng()
    found: dict[str, list[Tensor]] = {name: [] for name in (*EVIDENCES, "limit", "bma", "ml")}
    for _ in range(config.matrices):
        task = Task(
            random_transition_matrix(config.num_states, rng=rng), config.lags, max(config.lengths)
        )
        batch = sample(task, config.sequences, rng=rng)
        evidence = {
            kind: selective_evidence(batch.tokens, task, evidence=kind) for kind in EVIDENCES
        }
        for kind, seen in evidence.items():
            curves = [_at_lengths(config, batch, task, seen, beta) for beta in config.betas]
            found[kind].append(torch.stack(curves, dim=-1))  # (length, beta)
        found["limit"].append(_at_lengths(config, batch, task, evidence["mean"], math.inf))
        for name, predictor in (("bma", bma), ("ml", maximum_likelihood)):
            kl = kl_to_truth(predictor(batch.tokens, task), batch, task)
            found[name].append(kl[:, torch.tensor(config.lengths) - 1].mean(dim=0))
    means = {name: estimate(values) for name, values in found.items()}
    minus_ml = paired(found["limit"], found["ml"])
    return BetaCurves(
        config,
        {kind: means[kind].mean for kind in EVIDENCES},
        {kind: means[kind].error for kind in EVIDENCES},
        means["limit"].mean,
        means["bma"].mean,
        means["ml"].mean,
        means["ml"].error,
        minus_ml.mean,
        minus_ml.error,
    )


def _at_lengths(
    config: BetaConfig, batch: Batch, task: Task, evidence: Tensor, beta: float
) -> Tensor:
    """Measure the mean KL after each length. Given the evidence, a law depends on the last max_lag tokens alone."""
    found = []
    for length in config.lengths:
        last = slice(max(0, length - task.max_lag), length)
        tail = Batch(batch.tokens[:, last], batch.lags)
        law = mixture(weights_of(evidence[:, last], beta), tail.tokens, task)
        found.append(kl_to_truth(law, tail, task)[:, -1].mean())
    return torch.stack(found)


EXPERIMENT = Experiment("beta", BetaConfig(), BetaCurves, compute)
