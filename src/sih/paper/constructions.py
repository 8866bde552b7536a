"""KL of circuits run as weights: the constructed half of the paper's Fig. 4."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch

from sih.circuits import construct
from sih.files.record import Size
from sih.markov import Law, TokenTensor
from sih.paper.over_matrices import MatricesConfig, MatricesPanel, panels_over_matrices
from sih.results.beside import Strengths, circuit_law, circuits_for, yardsticks
from sih.results.curves import CIRCUIT, PREDICTOR, Compared
from sih.results.experiment import Experiment, Several
from sih.task import Task

SINK = "construction with a sink"


@dataclass(frozen=True)
class ConstructionsConfig(MatricesConfig, Strengths):
    """Circuits of the paper's strengths."""

    matrices: Several = 6
    sequences: Size = 32


@dataclass(frozen=True, eq=False)
class ConstructionCurves:
    """A panel for each lag set and distribution of matrices. Repetitions are matrices."""

    config: ConstructionsConfig
    panels: tuple[MatricesPanel, ...]


def compute(config: ConstructionsConfig, store: object) -> ConstructionCurves:
    """Build every circuit for every matrix, and run it as a transformer."""
    return ConstructionCurves(config, panels_over_matrices(config, partial(predict, config)))


@torch.no_grad()
def predict(
    config: ConstructionsConfig, tokens: TokenTensor, task: Task
) -> dict[str, tuple[Compared, Law]]:
    """Return the predictions of BMA, ML and every circuit.

    Weights that are not zero are run. Scores of the Bayes-optimal circuit are so large that its
    law depends on the order of additions in the eighth digit: this path is as near the exact law
    as the others are.
    """
    found = {label: (Compared(PREDICTOR), law) for label, law in yardsticks(tokens, task).items()}
    for label, model in circuits_for(task, lam=config.lam, beta=config.beta).items():
        law = model.predict(tokens, path="written")
        found[label] = Compared(CIRCUIT, model.config.heads), law
    sink = construct(task, lam=config.lam, beta=config.beta, sink=True)
    found[SINK] = Compared(CIRCUIT, sink.config.heads), circuit_law(sink, tokens, task)
    return found


EXPERIMENT = Experiment("constructions", ConstructionsConfig(), ConstructionCurves, compute)
