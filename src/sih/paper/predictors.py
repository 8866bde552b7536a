"""KL of the reference predictors: the paper's Fig. 4 without the transformers."""

from __future__ import annotations

from dataclasses import dataclass

from sih.base.types import Law, TokenTensor
from sih.paper.over_matrices import MatricesConfig, MatricesPanel, panels_over_matrices
from sih.predictors.predictors import PREDICTORS
from sih.results.curves import PREDICTOR, Compared
from sih.results.experiment import Experiment
from sih.task import Task

PredictorsConfig = MatricesConfig


@dataclass(frozen=True, eq=False)
class PredictorCurves:
    """One panel per lag set and distribution of matrices. Repetitions are matrices."""

    config: PredictorsConfig
    panels: tuple[MatricesPanel, ...]


def compute(config: PredictorsConfig, store: object) -> PredictorCurves:
    """Return the KL of every predictor on the same sequences of random matrices."""
    return PredictorCurves(config, panels_over_matrices(config, predict))


def predict(tokens: TokenTensor, task: Task) -> dict[str, tuple[Compared, Law]]:
    """Return the prediction of every predictor."""
    return {one.label: (Compared(PREDICTOR), one.law(tokens, task)) for one in PREDICTORS.values()}


EXPERIMENT = Experiment("predictors", PredictorsConfig(), PredictorCurves, compute)
