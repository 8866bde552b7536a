"""KL along the sequence for circuits run as weights: the constructed half of the paper's Fig. 4, and Bayes-optimal."""

from dataclasses import dataclass

import torch

from sih.construction import construct
from sih.markov import Law, TokenTensor
from sih.models.disentangled.dense import DisentangledTransformer
from sih.results.beside import (
    MatricesConfig,
    Strengths,
    circuit_law,
    circuits_for,
    panel_over_matrices,
    yardsticks,
)
from sih.results.curves import CIRCUIT, PREDICTOR, Compared, Panel, mean_kl_table
from sih.results.experiment import Experiment, Rows
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "KL divergence from the true next-token law (nats) along the sequence for circuits written by hand and run as "
    "transformers (T = 128, lambda = 500, beta = 100), the construction also with a sink at the first position, by its "
    "closed form; beside maximum likelihood (ML) and the Bayesian model average "
    "(BMA). Means over matrices with Dirichlet(1) rows, bands one standard error over matrices; all on the same "
    "sequences. The last position is left out: it has no next token. No models are trained."
)

REFERENCES = ("BMA", "ML", "construction")
SINK = "construction with a sink"


@dataclass(frozen=True)
class ConstructionsConfig(MatricesConfig, Strengths):
    matrices: int = 12
    sequences: int = 64


@dataclass(frozen=True)
class ConstructionCurves:
    """Holds a panel for each lag set, with differences to `REFERENCES`. Repetitions are matrices."""

    config: ConstructionsConfig
    panels: list[Panel]


def compute(config: ConstructionsConfig, store: RunStore) -> ConstructionCurves:
    """Build every circuit for every matrix and run it as a transformer, all on the same sequences."""
    return ConstructionCurves(config, [_panel(config, lags) for lags in config.lag_sets])


def _panel(config: ConstructionsConfig, lags: tuple[int, ...]) -> Panel:
    def predict(tokens: TokenTensor, task: Task) -> dict[str, tuple[Compared, Law]]:
        circuits = circuits_for(task, lam=config.lam, beta=config.beta)
        laws = {
            label: (Compared(PREDICTOR), law) for label, law in yardsticks(tokens, task).items()
        }
        run = {
            label: (Compared(CIRCUIT, one.config.heads), _law(one, tokens))
            for label, one in circuits.items()
        }
        sink = construct(task, lam=config.lam, beta=config.beta, sink=True)
        run[SINK] = Compared(CIRCUIT, sink.config.heads), circuit_law(sink, tokens, task)
        return laws | run

    return panel_over_matrices(config, lags, predict, REFERENCES)


@torch.no_grad()
def _law(model: DisentangledTransformer, tokens: TokenTensor) -> Law:
    """Run the weights, those alone that are not zero.

    Scores of the Bayes-optimal circuit are so large that its law depends on the order of additions in the eighth digit.
    This path is as near the exact law as the others are.
    """
    return model.predict(tokens, path="written")


def table(data: ConstructionCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels)


EXPERIMENT = Experiment(
    "constructions", CAPTION, ConstructionsConfig(), ConstructionCurves, compute, table=table
)
