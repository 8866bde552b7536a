"""KL along the sequence for trained models beside circuits, BMA and ML: the paper's Fig. 4."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.experiments.compared import (
    FRESH_SEED,
    Strengths,
    by_seeds,
    circuit_law,
    circuits_for,
    heads_label,
    trained_law,
    usual_heads,
    with_seeds,
    yardsticks,
)
from sih.experiments.curves import CIRCUIT, DIGITS, PREDICTOR, Compared, Curve, Panel, curve, mean_kl_table, panel
from sih.experiments.experiment import Experiment, Rows, Seeded
from sih.markov import Law
from sih.metrics import kl_to_truth
from sih.runs.run import Run
from sih.runs.run_store import RunStore
from sih.task import Batch, Task, sample
from sih.training.config import TrainConfig

CAPTION = (
    "KL divergence of the predicted from the true next-token law (nats) along the sequence, for circuits written by "
    "hand, trained transformers, maximum likelihood (ML) and the Bayesian model average (BMA); 5 states. Models are "
    "trained as the paper trains, at length 32 but for {1,2,3}, or with our recipe, at length 128. "
    "Means over fresh sequences of the matrix the models were trained on, the same for all curves of a panel; bands "
    "are one standard error over sequences, or the range over seeds where there are several. The last position is left "
    "out: it has no next token, so that no model was trained there."
)


@dataclass(frozen=True)
class TrainedConfig(Seeded, Strengths):
    """Asks for models by name, or folders of runs. Further seeds of one in the store join it.

    The disentangled ones take many times as long, and predict the first `disentangled_sequences` only.
    """

    lag_sets: tuple[tuple[int, ...], ...] = ((1, 2, 3), (1, 3, 4), (1, 2, 3, 4, 5), (1, 3))
    models: tuple[str, ...] = (
        *("paper-1.2.3", "paper-1.2.3-length32", "paper-1.2.3-1.1.1-length32", "paper-disentangled-1.2.3-length32"),
        *("paper-1.3.4-length32", "paper-1.2.3.4.5-length32", "paper-1.2.3.4.5-1.1.1-length32", "paper-1.3-length32"),
        *("standard-1.2.3", "standard-1.2.3-1.1.1", "disentangled-1.2.3"),
        *("standard-1.3.4", "disentangled-1.3.4"),
        *("standard-1.2.3.4.5", "standard-1.2.3.4.5-1.1.1", "disentangled-1.2.3.4.5"),
        *("standard-1.3", "disentangled-1.3"),
    )
    sequences: int = 1024
    disentangled_sequences: int = 512


@dataclass(frozen=True)
class TrainedPanel(Panel):
    """Holds the curves of one matrix. One of several seeds is their mean on every sequence; `seeds` has each model's.

    `nearer_bma` is the total variation of a prediction from BMA's minus that from ML's: negative if it is nearer BMA.
    """

    length: int
    seeds: dict[str, Curve]
    nearer_bma: dict[str, Curve]


@dataclass(frozen=True)
class TrainedCurves:
    """Holds a panel for each lag set, for each matrix if its models have several, and which models are missing."""

    config: TrainedConfig
    panels: list[TrainedPanel]
    missing: list[str]


def reads(config: TrainedConfig, store: RunStore) -> tuple[str, ...]:
    """Name the models of the configuration, with their further seeds."""
    return with_seeds(config.models, store)


def compute(config: TrainedConfig, store: RunStore) -> TrainedCurves:
    """Draw every panel's sequences once, run trained models on them, and circuits as `circuit_law` has it."""
    runs, missing = store.finished(reads(config, store))
    panels = []
    for lags in config.lag_sets:
        trained = [run for run in runs.values() if run.task.lags == lags]
        tasks = dict.fromkeys([run.task for run in trained] or [TrainConfig(lags=lags).task.steady()])
        panels += [_panel(config, task, [run for run in trained if run.task == task]) for task in tasks]
    return TrainedCurves(config, panels, missing)


def label_of(compared: Compared, lags: tuple[int, ...]) -> str:
    """Name a curve of trained models: by their heads where they are not those that the circuit needs, and a recipe."""
    label = f"trained {compared.kind}"
    if compared.heads != usual_heads(lags):
        label += ", 1 head" if compared.heads == (1, 1, 1) else f", {heads_label(compared.heads)}"
    return label if compared.plain else f"{label}, our recipe"


def _panel(config: TrainedConfig, task: Task, runs: list[Run]) -> TrainedPanel:
    batch = sample(task, config.sequences, rng=torch.Generator().manual_seed(FRESH_SEED + config.seed))
    circuits = circuits_for(task, lam=config.lam, beta=config.beta)
    likely = yardsticks(batch.tokens, task)
    laws = likely | {label: circuit_law(model, batch.tokens, task) for label, model in circuits.items()}
    compared = dict.fromkeys(likely, Compared(PREDICTOR))
    compared |= {label: Compared(CIRCUIT, model.config.heads) for label, model in circuits.items()}
    kl = {label: kl_to_truth(law, batch, task) for label, law in laws.items()}
    nearer = {label: nearer_bma(law, likely["BMA"], likely["ML"]) for label, law in laws.items()}
    seeds: dict[str, Curve] = {}
    for found, group in by_seeds(runs).items():
        label = label_of(found, task.lags)
        if label in compared:  # the same heads, of another width
            label += f", d={found.dim or group[0].config.flat().get('dim')}"
        size = config.disentangled_sequences if found.kind == "disentangled" else config.sequences
        part = Batch(batch.tokens[:size], batch.lags[:size])
        predicted = [trained_law(run, part.tokens).double() for run in group]
        each = [kl_to_truth(law, part, task) for law in predicted]
        seeds |= {run.name: curve(rows, task.max_lag, DIGITS) for run, rows in zip(group, each, strict=True)}
        differences = [nearer_bma(law, likely["BMA"][:size], likely["ML"][:size]) for law in predicted]
        compared[label], kl[label] = found, torch.stack(each).mean(dim=0)
        nearer[label] = torch.stack(differences).mean(dim=0)
    shared = panel(task.lags, compared, kl, ("BMA", "ML", "construction", "construction, 1 head"), DIGITS)
    nearer_curves = {label: curve(rows, task.max_lag, DIGITS) for label, rows in nearer.items()}
    return TrainedPanel(shared.lags, shared.compared, shared.kl, shared.minus, task.length, seeds, nearer_curves)


def nearer_bma(law: Law, bma: Law, ml: Law) -> Float[Tensor, "batch time"]:
    r"""Compare distances, $\frac12\|q - q_{BMA}\|_1 - \frac12\|q - q_{ML}\|_1$: negative where q is nearer BMA than ML.

    Paper: Sec. 6, "closer to the BMA rather than the ML for small sequence lengths" (there of KL; see `Panel.minus`).
    """
    return ((law - bma).abs().sum(dim=-1) - (law - ml).abs().sum(dim=-1)) / 2


def table(data: TrainedCurves) -> Rows:
    """Tabulate mean KL past the first max_lag positions, with its standard error over sequences."""
    return mean_kl_table(data.panels)


EXPERIMENT = Experiment("trained", CAPTION, TrainedConfig(), TrainedCurves, compute, reads, table)
