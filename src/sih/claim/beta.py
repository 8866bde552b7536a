r"""KL to the truth against $\beta$ at several lengths: the data of the paper's Fig. 3
(right), by $\beta$.

With mean evidence a fixed $\beta$ bounds the weights; with the sum the best $\beta$ is
small and nearly the same at every length. BMA and ML do not depend on $\beta$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import Increasing, NotEmpty, Size
from sih.base.stats import estimate, paired
from sih.base.types import TokenTensor
from sih.predictors.averaged_kl import ExactBayes, exact_bayes
from sih.predictors.evidence import mixture
from sih.predictors.predictors import (
    Evidence,
    bma,
    maximum_likelihood,
    selective_evidence,
    weights_of,
)
from sih.results.experiment import (
    Experiment,
    Lags,
    MatrixLaw,
    Positive,
    Seeded,
    Several,
    States,
)
from sih.task import Task, sample
from sih.task.matrices import random_transition_matrix

EVIDENCES: tuple[Evidence, Evidence] = ("mean", "sum")


@dataclass(frozen=True)
class BetaConfig(Seeded):
    num_states: States = 5
    lags: Lags = (1, 2, 3)
    lengths: Annotated[tuple[Size, ...], Increasing()] = (8, 16, 32, 64, 128)
    """Tokens after which the KL is taken."""
    betas: Annotated[tuple[Positive, ...], Increasing()] = tuple(
        float(f"{10 ** (e / 4):.4g}") for e in range(-4, 17, 2)
    )
    """Inverse temperatures of the estimator."""
    matrices: Several = 8
    """Number of random matrices of each distribution."""
    sequences: Size = 750
    """Sequences per matrix, for the curves."""
    limit_sequences: Size = 3000
    """Sequences per matrix for BMA, ML and infinite beta: beyond 16 tokens these rarely
    err."""
    laws: Annotated[tuple[MatrixLaw, ...], NotEmpty("one distribution or more")] = (
        "uniform",
        "dirichlet",
    )
    """Distributions of the matrices."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lengths[0] <= self.lags[-1]:
            raise FieldError(
                "lengths",
                f"lengths must be above the largest lag, {self.lags[-1]}; got {self.lengths}",
            )


@dataclass(frozen=True, eq=False)
class BetaOfLaw:
    """Mean KL at the last position of each length, with standard errors over matrices.

    `selective[evidence][length][beta]`; `limit[length]` is beta = infinity, the largest
    evidence taken outright; `minus_ml[length]` is the KL of that limit minus that of
    ML, matrix by matrix.
    """

    selective: dict[str, Float[Tensor, "length beta"]]
    selective_error: dict[str, Float[Tensor, "length beta"]]
    limit: Float[Tensor, " length"]
    bma: Float[Tensor, " length"]
    ml: Float[Tensor, " length"]
    ml_error: Float[Tensor, " length"]
    minus_ml: Float[Tensor, " length"]
    minus_ml_error: Float[Tensor, " length"]


@dataclass(frozen=True, eq=False)
class BetaCurves:
    """The measurements for each distribution of matrices."""

    config: BetaConfig
    laws: dict[str, BetaOfLaw]


def compute(config: BetaConfig, store: object) -> BetaCurves:
    """Return the measurements for every distribution of matrices."""
    return BetaCurves(config, {law: of_law(config, law) for law in config.laws})


def of_law(config: BetaConfig, law: str) -> BetaOfLaw:
    """Return the measurements for one distribution of matrices.

    All predictors get the same sequences: the longest ones, and their prefixes for
    shorter lengths.
    """
    rng = config.rng()
    found: dict[str, list[Tensor]] = {name: [] for name in (*EVIDENCES, "limit", "bma", "ml")}
    for _ in range(config.matrices):
        P = random_transition_matrix(config.num_states, rng=rng, law=law)
        task = Task(P, config.lags, max(config.lengths))
        drawn = max(config.sequences, config.limit_sequences)
        tokens = sample(task, drawn, rng=rng).tokens
        exact = exact_bayes(tokens, task)
        few = tokens[: config.sequences]
        for kind in EVIDENCES:
            seen = selective_evidence(few, task, evidence=kind)
            curves = [_at_lengths(config, exact, few, task, seen, beta) for beta in config.betas]
            found[kind].append(torch.stack(curves, dim=-1))  # (length, beta)
        mean = selective_evidence(tokens, task, evidence="mean")
        found["limit"].append(_at_lengths(config, exact, tokens, task, mean, math.inf))
        for name, predictor in (("bma", bma), ("ml", maximum_likelihood)):
            kl = exact.kl(predictor(tokens, task))
            found[name].append(kl[:, torch.tensor(config.lengths) - 1].mean(dim=0))
    means = {name: estimate(values) for name, values in found.items()}
    minus_ml = paired(found["limit"], found["ml"])
    return BetaOfLaw(
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
    config: BetaConfig,
    exact: ExactBayes,
    tokens: TokenTensor,
    task: Task,
    evidence: Tensor,
    beta: float,
) -> Float[Tensor, " length"]:
    """Return the mean KL after each length, averaged over the lag given the tokens.

    Given the evidence, a prediction depends on the last max_lag tokens alone.
    """
    found = []
    for length in config.lengths:
        last = slice(max(0, length - task.max_lag), length)
        law = mixture(weights_of(evidence[:, last], beta), tokens[:, last], task)[:, -1:]
        end = slice(length - 1, length)
        part = ExactBayes(exact.best[: len(law), end], exact.least[: len(law), end])
        found.append(part.kl(law).mean())
    return torch.stack(found)


EXPERIMENT = Experiment("beta", BetaConfig(), BetaCurves, compute)
