"""Whether weights compute what the paper says: each layer of a circuit against its closed form, for several lag sets.

Prop. 1 (Sec. 5.1) with the third layer by masks or positions (App. F), lags that are not contiguous (App. G), two lags
with a single head (App. H), and our Bayes-optimal circuit.
"""

from dataclasses import dataclass
from typing import Any

import torch

from sih.construction import construct, verify
from sih.markov import random_transition_matrix
from sih.models.offsets import attention_at
from sih.predictors import selective_weights
from sih.results.beside import MatricesConfig, Strengths
from sih.results.experiment import Experiment, Rows, braces
from sih.runs.run_store import RunStore
from sih.task import Task, sample

CAPTION = (
    "Largest difference between what constructed weights compute (attention of every layer, stored evidence, "
    "prediction) and the closed form of their circuit, in float64, over matrices with Dirichlet(1) rows, sequences of "
    "the task and adversarial ones, at every position that is claimed. For the Bayes-optimal circuit also the largest "
    "difference of an attention weight from the exact posterior of the lag, and for Prop. 1 from the weights of Eq. "
    "(3), at every position past the largest lag: of the circuit with a sink at the first position, and of the weights "
    "as Sec. 5.1 has them, without one. No models are trained."
)

MASKS, POSITIONS, TWO_LAGS = (
    "Prop. 1, third layer by masks",
    "third layer by positions",
    "two lags, 1 head",
)
BAYES, POSTERIOR = "Bayes-optimal", "Bayes-optimal, from the posterior"
PRINTED_SINK, PRINTED, PRINTED_LATE = (
    "Eq. (3), with a sink",
    "Eq. (3), without a sink",
    "Eq. (3), without, last half",
)


@dataclass(frozen=True)
class CertificatesConfig(MatricesConfig, Strengths):
    lag_sets: tuple[tuple[int, ...], ...] = (
        *((1, 2, 3), (2, 3, 4), (1, 2, 3, 4, 5)),
        *((1, 3), (2, 5), (1, 3, 4), (3, 5, 7), (1, 2, 4, 8)),
    )
    length: int = 64
    matrices: int = 2
    sequences: int = 8


@dataclass(frozen=True)
class CertificateErrors:
    """Holds `error[lag set][circuit]`, the largest over matrices, of the circuits that the lags allow."""

    config: CertificatesConfig
    heads: list[int]
    error: list[dict[str, float]]


def compute(config: CertificatesConfig, store: RunStore) -> CertificateErrors:
    """Build each circuit for some matrices, and verify it on sequences of the task and adversarial ones."""
    found = [_worst(config, lags) for lags in config.lag_sets]
    return CertificateErrors(config, [heads for heads, _ in found], [worst for _, worst in found])


def _worst(config: CertificatesConfig, lags: tuple[int, ...]) -> tuple[int, dict[str, float]]:
    """Find the least heads of a lag set, and the largest error of each circuit."""
    rng = torch.Generator().manual_seed(config.seed)
    heads, errors = 0, []
    for _ in range(config.matrices):
        task = Task(random_transition_matrix(config.num_states, rng=rng), lags, config.length)
        for name, options in _circuits(config, lags).items():
            model = construct(task, **options)
            found = verify(model, task, size=config.sequences, rng=rng)
            errors.append((name, found.max_error))
            if found.posterior_error is not None:
                errors.append((POSTERIOR, found.posterior_error))
            if name == POSITIONS:
                heads = model.circuit.heads
        if MASKS in _circuits(config, lags):
            errors += from_equation_3(config, task)
    names = dict.fromkeys(name for name, _ in errors)
    return heads, {name: max(error for other, error in errors if other == name) for name in names}


@torch.no_grad()
def from_equation_3(config: CertificatesConfig, task: Task) -> list[tuple[str, float]]:
    r"""Return how far the third layer's weights are from Eq. (3), $w_{i,k} \propto \exp(\frac{\beta}{i - \hat k}
    \sum_{i'} \tilde p_{i',k})$, past the first max_lag positions, over the sequences of the task."""
    tokens = sample(task, config.sequences, rng=config.seed + 1).tokens
    wanted = selective_weights(tokens, task, beta=config.beta, evidence="mean")
    found = []
    for name, sink in ((PRINTED_SINK, True), (PRINTED, False)):
        model = construct(task, lam=config.lam, beta=config.beta, sink=sink)
        attention = model.trace(tokens)["3.1/attention"]
        gap = (
            (attention_at(attention, [lag - 1 for lag in task.lags]) - wanted)
            .abs()
            .amax(dim=(0, 2))
        )
        found.append((name, gap[task.max_lag :].max().item()))
        if not sink:
            found.append((PRINTED_LATE, gap[task.length // 2 :].max().item()))
    return found


def _circuits(config: CertificatesConfig, lags: tuple[int, ...]) -> dict[str, dict[str, Any]]:
    """List the circuits that the lags allow, as options of `construct`. The Bayes-optimal one sets its strengths."""
    strengths = {"lam": config.lam, "beta": config.beta}
    masks = {MASKS: {"third": "mask", **strengths}} if lags[-1] - lags[0] + 1 == len(lags) else {}
    two = {TWO_LAGS: {"target": "two-lags", **strengths}} if len(lags) == 2 else {}
    return {
        **masks,
        POSITIONS: {"third": "position", **strengths},
        **two,
        BAYES: {"target": "bayes"},
    }


def table(data: CertificateErrors) -> Rows:
    """Make one row for each circuit: its largest error for each lag set."""
    rows = [["circuit", *(braces(lags) for lags in data.config.lag_sets)]]
    for name in (MASKS, PRINTED_SINK, PRINTED, PRINTED_LATE, POSITIONS, TWO_LAGS, BAYES, POSTERIOR):
        rows.append(
            [name, *(f"{error[name]:.1e}" if name in error else "" for error in data.error)]
        )
    return rows


EXPERIMENT = Experiment(
    "certificates", CAPTION, CertificatesConfig(), CertificateErrors, compute, table=table
)
