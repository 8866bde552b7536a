"""How depth and second-layer heads change what is learned: the paper's App. "Scaling heads and layers"."""

from dataclasses import dataclass

import torch

from sih.construction import construct, least_heads
from sih.experiments.compared import (
    FRESH_SEED,
    Strengths,
    by_seeds,
    circuit_law,
    heads_label,
    trained_law,
    with_seeds,
    yardsticks,
)
from sih.experiments.curves import CIRCUIT, DIGITS, PREDICTOR, Compared, Panel, panel
from sih.experiments.experiment import Experiment, Rows, Seeded, braces
from sih.metrics import kl_to_truth
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import sample
from sih.training.config import TrainConfig

CAPTION = (
    "KL divergence of the predicted from the true next-token law (nats) for standard transformers of different depth "
    "(top, lags {1,2,3}, our recipe) and with different numbers of second-layer heads (lags {1,2,3,4,5}; beside them "
    "the construction with as many): trained as the paper trains, at length 32 (middle), and with our recipe, at "
    "length 128 (bottom). Left: along the sequence. Right: means past the first max_lag positions; lines mark "
    "ML and BMA. All of a row on the same fresh sequences; bands and bars are one standard error over sequences, seeds "
    "averaged."
)


@dataclass(frozen=True)
class ScalingConfig(Seeded, Strengths):
    """Asks for models by name, or folders of runs, for each row. Further seeds of one in the store join it."""

    layers: tuple[str, ...] = (
        *("standard-1.2.3-1.1", "standard-1.2.3-3.1", "standard-1.2.3-1.3", "standard-1.2.3-3.3", "standard-1.2.3"),
        *("standard-1.2.3-dim128", "standard-1.2.3-1.3.1.1", "standard-1.2.3-1.3.1.1.1"),
    )
    heads: tuple[str, ...] = (
        *("standard-1.2.3.4.5-1.1.1", "standard-1.2.3.4.5-1.2.1", "standard-1.2.3.4.5-1.3.1"),
        *("standard-1.2.3.4.5", "standard-1.2.3.4.5-1.7.1"),
    )
    plain_heads: tuple[str, ...] = (
        *("paper-1.2.3.4.5-1.1.1-length32", "paper-1.2.3.4.5-1.2.1-length32", "paper-1.2.3.4.5-1.3.1-length32"),
        "paper-1.2.3.4.5-length32",
    )
    layers_lags: tuple[int, ...] = (1, 2, 3)
    heads_lags: tuple[int, ...] = (1, 2, 3, 4, 5)
    constructed_heads: tuple[int, ...] = (1, 2, 3, 4, 5)
    sequences: int = 1024


@dataclass(frozen=True)
class ScalingCurves:
    """Holds a panel of models that differ in depth, and two of models and circuits that differ in heads.

    Those of `plain_heads` are trained as the paper trains, the others with our recipe.
    """

    config: ScalingConfig
    layers: Panel
    heads: Panel
    plain_heads: Panel
    missing: list[str]


def reads(config: ScalingConfig, store: RunStore) -> tuple[str, ...]:
    """Name the models of all rows, with their further seeds."""
    return with_seeds([*config.layers, *config.heads, *config.plain_heads], store)


def compute(config: ScalingConfig, store: RunStore) -> ScalingCurves:
    """Run the models of each row on the same fresh sequences."""
    missing: list[str] = []

    def row(names: tuple[str, ...], lags: tuple[int, ...], circuits: tuple[int, ...]) -> Panel:
        found, absent = store.finished(with_seeds(names, store))
        missing.extend(absent)
        return _panel(config, lags, list(found.values()), circuits)

    layers = row(config.layers, config.layers_lags, ())
    heads, plain_heads = (
        row(names, config.heads_lags, config.constructed_heads) for names in (config.heads, config.plain_heads)
    )
    return ScalingCurves(config, layers, heads, plain_heads, missing)


def _panel(config: ScalingConfig, lags: tuple[int, ...], runs: list[Run], circuits: tuple[int, ...]) -> Panel:
    """Average the models, those that differ by seed only together, and circuits with so many second-layer heads."""
    task = runs[0].task if runs else TrainConfig(lags=lags).task.steady()
    for run in runs:
        if run.task.lags != lags or run.task != task:
            raise ValueError(f"models of one row share lags {lags}, length and matrix; {run.name} has others")
    batch = sample(task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
    kl = {label: kl_to_truth(law, batch, task) for label, law in yardsticks(batch.tokens, task).items()}
    compared = dict.fromkeys(kl, Compared(PREDICTOR))
    for found, group in by_seeds(runs).items():
        label = heads_label(found.heads, found.dim)
        each = [kl_to_truth(trained_law(run, batch.tokens), batch, task) for run in group]
        compared[label], kl[label] = found, torch.stack(each).mean(dim=0)
    references = tuple(kl)
    for count in circuits:
        label = f"construction, {count}"
        heads = min(count, least_heads(task.lags).heads)  # more than lose nothing change nothing
        model = construct(task, heads=heads, third="position", lam=config.lam, beta=config.beta)
        compared[label] = Compared(CIRCUIT, (1, count, 1))
        kl[label] = kl_to_truth(circuit_law(model, batch.tokens, task), batch, task)
    return panel(lags, compared, kl, references, DIGITS)


def table(data: ScalingCurves) -> Rows:
    """Make one row for each curve: mean KL past the first max_lag positions, and minus ML's and BMA's."""
    rows = [["lags", "length", "heads", "mean KL", "minus ML", "minus BMA"]]
    for row in (data.layers, data.plain_heads, data.heads):
        for label, found in row.kl.items():
            minus = [str(row.minus[other][label]) if label != other else "" for other in ("ML", "BMA")]
            rows.append([braces(row.lags), str(len(found.by_position) + 1), label, str(found), *minus])
    return rows


EXPERIMENT = Experiment("scaling", CAPTION, ScalingConfig(), ScalingCurves, compute, reads, table)
