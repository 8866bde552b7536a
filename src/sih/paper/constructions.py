"""KL of hand-written circuits: the constructed half of the paper's Fig. 4."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import torch

from sih.base.record import Size
from sih.base.types import Law, TokenTensor
from sih.circuits import construct
from sih.paper.over_matrices import MatricesConfig, MatricesPanel, panels_over_matrices
from sih.results.beside import Strengths, circuit_law, circuits_for, yardsticks
from sih.results.curves import CIRCUIT, PREDICTOR, Compared
from sih.results.experiment import Experiment, Several
from sih.task import Task

SINK = "construction with a sink"
RUN_MATRICES = 2
"""Matrices of each distribution for which the weights are run."""


@dataclass(frozen=True)
class ConstructionsConfig(MatricesConfig, Strengths):
    """Circuits with the paper's strengths."""

    matrices: Several = 24
    """Number of random matrices of each distribution."""
    sequences: Size = 64
    run: Size = 8
    """Sequences per matrix on which the weights themselves are run, for the first
    matrices."""


@dataclass(frozen=True, eq=False)
class ConstructionCurves:
    """One panel per lag set and distribution of matrices. Repetitions are matrices.

    `panels` contain the predictions of the weights at about a hundredth of the cost
    (`circuit_law`). `run` has those of the weights themselves, on fewer sequences.
    """

    config: ConstructionsConfig
    panels: tuple[MatricesPanel, ...]
    run: tuple[MatricesPanel, ...]


def compute(config: ConstructionsConfig, store: object) -> ConstructionCurves:
    """Return the KL of every circuit for every matrix."""
    panels = panels_over_matrices(config, partial(predict, config, weights=False))
    fewer = replace(config, matrices=min(RUN_MATRICES, config.matrices), sequences=config.run)
    run = panels_over_matrices(fewer, partial(predict, config, weights=True))
    return ConstructionCurves(config, panels, run)


@torch.no_grad()
def predict(
    config: ConstructionsConfig, tokens: TokenTensor, task: Task, *, weights: bool
) -> dict[str, tuple[Compared, Law]]:
    """Return the predictions of BMA, ML and every circuit, from its weights if they are
    to be run.

    Blocks of zeros are skipped. Scores of the Bayes-optimal circuit are so large that
    its prediction depends on the order of additions in the eighth digit. This backend
    is as close to the exact one as the others are.
    """
    found = {label: (Compared(PREDICTOR), law) for label, law in yardsticks(tokens, task).items()}
    circuits = circuits_for(task, lam=config.lam, beta=config.beta)
    circuits[SINK] = construct(task, lam=config.lam, beta=config.beta, sink=True)
    for label, model in circuits.items():
        law = model.predict(tokens, path="written") if weights else circuit_law(model, tokens, task)
        found[label] = Compared(CIRCUIT, model.config.heads), law
    return found


EXPERIMENT = Experiment("constructions", ConstructionsConfig(), ConstructionCurves, compute)
