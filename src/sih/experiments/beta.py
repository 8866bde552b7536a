r"""KL to the truth against $\beta$ at several lengths: the paper's Fig. 3 (right), where large beta matches ML.

With mean evidence a fixed $\beta$ bounds the weights; with the sum the best $\beta$ is small and nearly the same at
every length. BMA and ML do not depend on $\beta$.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sih.evidence import mixture
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth
from sih.predictors import Evidence, bma, maximum_likelihood, selective_evidence, weights_of
from sih.results.experiment import Experiment, Rows, Seeded
from sih.runs.run_store import RunStore
from sih.stats import estimate, paired
from sih.task import Batch, Task, sample

CAPTION = (
    "KL divergence from the true next-token law (nats) after T tokens against the inverse temperature of the "
    "estimator, with the mean of the normalised probabilities as evidence (left, the paper's) and with their sum "
    "(right), lags {1,2,3}. Horizontal lines: the Bayesian model average and maximum likelihood. Means over sequences "
    "and matrices, bands one standard error over matrices. No models are trained."
)

EVIDENCES: tuple[Evidence, Evidence] = ("mean", "sum")


@dataclass(frozen=True)
class BetaConfig(Seeded):
    num_states: int = 5
    lags: tuple[int, ...] = (1, 2, 3)
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    betas: tuple[float, ...] = tuple(float(f"{10 ** (e / 4):.4g}") for e in range(-4, 17, 2))
    matrices: int = 8
    sequences: int = 3000


@dataclass(frozen=True)
class BetaCurves:
    """Holds mean KL at the last position of each length over sequences and matrices, with errors over matrices.

    `selective[evidence][length][beta]`; `limit[length]` is beta = infinity, the largest evidence taken outright;
    `minus_ml[length]` is the KL of that limit minus that of ML, matrix by matrix.
    """

    config: BetaConfig
    selective: dict[str, list[list[float]]]
    selective_error: dict[str, list[list[float]]]
    limit: list[float]
    bma: list[float]
    ml: list[float]
    ml_error: list[float]
    minus_ml: list[float]
    minus_ml_error: list[float]


def compute(config: BetaConfig, store: RunStore) -> BetaCurves:
    """Show every predictor the same sequences: those of the greatest length, cut to the shorter ones."""
    rng = torch.Generator().manual_seed(config.seed)
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
        {kind: means[kind].mean.tolist() for kind in EVIDENCES},
        {kind: means[kind].error.tolist() for kind in EVIDENCES},
        means["limit"].mean.tolist(),
        means["bma"].mean.tolist(),
        means["ml"].mean.tolist(),
        means["ml"].error.tolist(),
        minus_ml.mean.tolist(),
        minus_ml.error.tolist(),
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


def table(data: BetaCurves) -> Rows:
    """Make one row for each length: BMA, ML, the limit of large beta, the best beta of each evidence with its KL."""
    rows = [["T", "BMA", "ML", "estimator, β→∞", "mean, best β", "sum, best β"]]
    for j, length in enumerate(data.config.lengths):
        best = []
        for kind in EVIDENCES:
            kl, beta = min(zip(data.selective[kind][j], data.config.betas, strict=True))
            best.append(f"{abs(kl):.5f} (β={beta:g})")
        rows.append(
            [str(length), *(f"{abs(x[j]):.5f}" for x in (data.bma, data.ml, data.limit)), *best]
        )
    return rows


EXPERIMENT = Experiment("beta", CAPTION, BetaConfig(), BetaCurves, compute, table=table)
