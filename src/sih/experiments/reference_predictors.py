"""KL along the sequence for the reference predictors: the paper's Fig. 4 without the transformers."""

from dataclasses import dataclass

from sih.markov import Law, TokenTensor
from sih.predictors import PREDICTORS
from sih.results.beside import MatricesConfig, panel_over_matrices
from sih.results.curves import PREDICTOR, Compared, Panel, mean_kl_table
from sih.results.experiment import Experiment, Rows
from sih.runs.run_store import RunStore
from sih.task import Task

CAPTION = (
    "KL divergence from the true next-token law (nats) along the sequence for reference predictors that know the "
    "matrix and the lags (but for the matrix, the plug-in; but for both, the n-gram), 5 states. Means over matrices "
    "with Dirichlet(1) rows, bands one standard error over matrices. The last position is left out: it has no "
    "next token. No models are trained."
)


PredictorsConfig = MatricesConfig


@dataclass(frozen=True)
class PredictorCurves:
    """Holds a panel for each lag set. Repetitions are matrices."""

    config: PredictorsConfig
    panels: list[Panel]


def compute(config: PredictorsConfig, store: RunStore) -> PredictorCurves:
    """Draw a fresh matrix with Dirichlet(1) rows for each repetition, and the same sequences for every predictor."""
    return PredictorCurves(
        config, [panel_over_matrices(config, lags, _predicted) for lags in config.lag_sets]
    )


def _predicted(tokens: TokenTensor, task: Task) -> dict[str, tuple[Compared, Law]]:
    return {one.label: (Compared(PREDICTOR), one.law(tokens, task)) for one in PREDICTORS.values()}


def table(data: PredictorCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over matrices."""
    return mean_kl_table(data.panels, "predictor")


EXPERIMENT = Experiment(
    "predictors", CAPTION, PredictorsConfig(), PredictorCurves, compute, table=table
)
