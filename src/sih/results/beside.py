"""References on a batch: predictors, hand-written circuits, trained models."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.record import Above
from sih.base.types import Law, TokenTensor
from sih.circuits import circuit_weights, construct
from sih.models.disentangled.dense import DisentangledTransformer
from sih.predictors.averaged_kl import ExactBayes
from sih.predictors.evidence import mixture
from sih.predictors.predictors import PREDICTORS
from sih.results.curves import Compared
from sih.results.models import recipe_in_words, trained_plainly, width
from sih.task import Task
from sih.training.runs.run import Run

CHUNK = 64
"""Sequences that a model predicts at once: more are not faster and need the memory."""


@dataclass(frozen=True)
class Strengths:
    """Strengths of the circuits, by default the paper's."""

    lam: Annotated[float, Above(0)] = field(default=500.0, kw_only=True)
    """Strength of the circuits' masks."""
    beta: Annotated[float, Above(0)] = field(default=100.0, kw_only=True)
    """Inverse temperature of the circuits' last layer."""


def yardsticks(tokens: TokenTensor, task: Task) -> dict[str, Law]:
    """Return the predictions of the references for every model, by label: BMA and ML."""
    return {one.label: one.law(tokens, task) for one in PREDICTORS.values() if one.yardstick}


def circuits_for(
    task: Task, *, lam: float = 500.0, beta: float = 100.0
) -> dict[str, DisentangledTransformer]:
    """Return every circuit that the lags allow, at the paper's strengths. The
    Bayes-optimal one chooses its own.
    """
    strengths: dict[str, Any] = {"lam": lam, "beta": beta}
    found = {
        "construction": construct(task, **strengths),
        "construction, 1 head": construct(task, heads=1, third="position", **strengths),
    }
    if len(task.lags) == 2:
        found["two lags, 1 head"] = construct(task, target="two-lags", **strengths)
    return {**found, "Bayes-optimal construction": construct(task, target="bayes")}


def circuit_law(model: DisentangledTransformer, tokens: TokenTensor, task: Task) -> Law:
    """Return the prediction of a circuit's weights, about a hundred times faster than
    by running them.

    From `circuit.first_exact_position` on the weights equal their closed form up to
    rounding (`sih verify`). Before it they do not (docs/errata.md, 4). So the weights
    are run on the first few tokens, which suffices since attention is causal.
    """
    first = min(model.circuit.first_exact_position, tokens.shape[1])
    law = mixture(circuit_weights(tokens, task, model.circuit), tokens, task)
    if first:
        with torch.no_grad():
            law[:, :first] = model.predict(tokens[:, :first]).to(law)
    return law


def trained_law(run: Run, tokens: TokenTensor) -> Law:
    """Return the predictions of a trained model, computed in chunks of sequences."""
    with torch.no_grad():
        return torch.cat([run.model.predict(part) for part in tokens.split(CHUNK)])


def averaged_kl(law: Law, exact: ExactBayes) -> Float[Tensor, "batch time"]:
    """Return the KL of a prediction to the truth, averaged over the lag given the
    tokens, at every position.

    A prediction with fewer sequences is taken to be of the first ones.
    """
    return ExactBayes(exact.best[: len(law)], exact.least[: len(law)]).kl(law.double())


def by_seeds(runs: Iterable[Run]) -> dict[Compared, list[Run]]:
    """Return groups of runs that differ in the seed alone: the seeds of one curve, in
    order.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(str({**run.config.flat(), "seed": None}), []).append(run)

    def compared(group: list[Run]) -> Compared:
        config = group[0].config
        names, seeds = tuple(run.name for run in group), tuple(run.config.seed for run in group)
        return Compared(
            config.model.kind,
            config.heads,
            width(config),
            names,
            seeds,
            trained_plainly(config),
            recipe_in_words(config),
        )

    return {compared(group): group for group in groups.values()}


def heads_label(heads: tuple[int, ...], dim: int | None = None) -> str:
    """Return the heads of each layer in the paper's notation, and the width unless it
    is the default.

    >>> heads_label((1, 3, 1), 128)
    '[1,3,1], d=128'
    """
    return f"[{','.join(map(str, heads))}]" + (f", d={dim}" if dim else "")
