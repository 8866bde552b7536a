r"""KL to the truth against $\beta$ at several lengths: the paper's Fig. 3 (right), where large beta matches ML.

With mean evidence a fixed $\beta$ bounds the weights; with the sum the best $\beta$ is small and nearly the same at
every length. BMA and ML do not depend on $\beta$.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from sih.experiments.experiment import Experiment, Rows
from sih.markov import random_transition_matrix
from sih.metrics import kl_to_truth
from sih.predictors import Evidence, bma, maximum_likelihood, selective
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
class BetaConfig:
    num_states: int = 5
    lags: tuple[int, ...] = (1, 2, 3)
    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    betas: tuple[float, ...] = tuple(float(f"{10 ** (e / 4):.4g}") for e in range(-4, 17, 2))
    matrices: int = 8
    sequences: int = 3000
    seed: int = 0


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
    minus_ml: list[float]
    minus_ml_error: list[float]


def compute(config: BetaConfig, store: RunStore) -> BetaCurves:
    """Show every predictor the same sequences: those of the greatest length, cut to the shorter ones."""
    rng = torch.Generator().manual_seed(config.seed)
    last = torch.tensor(config.lengths) - 1
    found: dict[str, list[Tensor]] = {name: [] for name in ("mean", "sum", "limit", "bma", "ml")}
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), config.lags, max(config.lengths))
        batch = sample(task, config.sequences, rng=rng)

        def at_lengths(prediction: Tensor, batch: Batch = batch, task: Task = task) -> Tensor:
            return kl_to_truth(prediction, batch, task)[:, last].mean(dim=0)

        for kind in EVIDENCES:
            curves = [at_lengths(selective(batch.tokens, task, beta=b, evidence=kind)) for b in config.betas]
            found[kind].append(torch.stack(curves, dim=-1))  # (length, beta)
        found["limit"].append(at_lengths(selective(batch.tokens, task, beta=math.inf)))
        found["bma"].append(at_lengths(bma(batch.tokens, task)))
        found["ml"].append(at_lengths(maximum_likelihood(batch.tokens, task)))
    means = {name: estimate(values) for name, values in found.items()}
    minus_ml = paired(found["limit"], found["ml"])
    return BetaCurves(
        config,
        {kind: means[kind].mean.tolist() for kind in EVIDENCES},
        {kind: means[kind].error.tolist() for kind in EVIDENCES},
        means["limit"].mean.tolist(),
        means["bma"].mean.tolist(),
        means["ml"].mean.tolist(),
        minus_ml.mean.tolist(),
        minus_ml.error.tolist(),
    )


def table(data: BetaCurves) -> Rows:
    """Make one row for each length: BMA, ML, the limit of large beta, the best beta of each evidence with its KL."""
    rows = [["T", "BMA", "ML", "estimator, β→∞", "mean, best β", "sum, best β"]]
    for j, length in enumerate(data.config.lengths):
        best = []
        for kind in EVIDENCES:
            kl, beta = min(zip(data.selective[kind][j], data.config.betas, strict=True))
            best.append(f"{abs(kl):.5f} (β={beta:g})")
        rows.append([str(length), *(f"{abs(x[j]):.5f}" for x in (data.bma, data.ml, data.limit)), *best])
    return rows


EXPERIMENT = Experiment("beta", CAPTION, BetaConfig(), BetaCurves, compute, table=table)
