r"""KL along the sequence of the estimator at several $\beta$, with BMA and ML: the
paper's Fig. 3 (right).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from sih.base.record import Increasing, NotEmpty, Size
from sih.base.types import Law, TokenTensor
from sih.paper.over_matrices import MatricesConfig, MatricesPanel, panels_over_matrices
from sih.predictors.evidence import mixture
from sih.predictors.predictors import selective_evidence, weights_of
from sih.results.beside import yardsticks
from sih.results.curves import PREDICTOR, Compared
from sih.results.experiment import Experiment, LagSets, MatrixLaw, Positive
from sih.task import Task


@dataclass(frozen=True)
class BetaAlongConfig(MatricesConfig):
    lag_sets: LagSets = ((1, 2, 3),)
    betas: Annotated[tuple[Positive, ...], Increasing()] = (1.0, 2.0, 5.0, 10.0, 25.0, 100.0)
    """Inverse temperatures of the estimator."""
    sequences: Size = 500
    laws: Annotated[tuple[MatrixLaw, ...], NotEmpty("one distribution or more")] = ("uniform",)
    """Distributions of the matrices."""


@dataclass(frozen=True, eq=False)
class BetaAlong:
    """One panel per lag set and distribution of matrices. Repetitions are matrices."""

    config: BetaAlongConfig
    panels: tuple[MatricesPanel, ...]


def label_of(beta: float) -> str:
    """Return the label of the estimator's curve at this beta."""
    return f"β = {beta:g}"


def compute(config: BetaAlongConfig, store: object) -> BetaAlong:
    """Return the KL of BMA, ML and the estimator at every beta, on the same sequences."""
    return BetaAlong(config, panels_over_matrices(config, partial(predict, config)))


def predict(
    config: BetaAlongConfig, tokens: TokenTensor, task: Task
) -> dict[str, tuple[Compared, Law]]:
    """Return the predictions of BMA, of ML, and of the estimator at every beta, with
    mean evidence.
    """
    laws = yardsticks(tokens, task)
    evidence = selective_evidence(tokens, task, evidence="mean")
    for beta in config.betas:
        laws[label_of(beta)] = mixture(weights_of(evidence, beta), tokens, task)
    return {label: (Compared(PREDICTOR), law) for label, law in laws.items()}


EXPERIMENT = Experiment("beta_along", BetaAlongConfig(), BetaAlong, compute)
