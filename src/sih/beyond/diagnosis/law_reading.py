"""Quality of any predictions of the next token: distance from the truth and from Bayes,
and the lag they follow.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.stats import estimate
from sih.predictors.metrics import divergence, scored_positions
from sih.predictors.predictors import bma, maximum_likelihood, stationary_law, truth
from sih.task import Batch, CausalTask, first_position

LIKE_BMA = 1e-3
"""KL in nats: a prediction closer than this to BMA's predicts like it."""


class Interval(NamedTuple):
    """A mean over sequences, with both ends of an interval of two standard errors."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        mean, low, high = (f"{value:.4f}".replace("-0.0000", "0.0000") for value in self)
        return f"{mean} [{low}, {high}]"


@dataclass(frozen=True)
class LawReading:
    """Quality of predictions. Means are over sequences and positions beyond the first
    max_lag, except the last.
    """

    kl: dict[str, Interval] = field(default_factory=dict)
    """KL to the truth, or to BMA's prediction if the lags are unknown: of "model",
    "bma", "ml" and "stationary"."""
    to_bma: dict[str, Interval] = field(default_factory=dict)
    """KL from BMA's prediction, the loss relative to Bayes: of "model", "ml" and
    "stationary"."""
    lag_accuracy: dict[str, Interval] = field(default_factory=dict)
    """Frequency at which the true lag's distribution is the nearest to the prediction,
    of "model", "bma" and "ml".

    Only positions count at which no other lag predicts the same distribution.
    """
    by_position: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """`kl` at every position except the last, which training never reaches."""
    words: str = ""
    """Quality in words, with the thresholds in `docs/roles.md`."""


def read_law(
    law: Float[Tensor, "batch time state"],
    batch: Batch,
    task: CausalTask,
    *,
    lags_known: bool = True,
) -> LawReading:
    """Return the quality of a prediction and of the references, by KL to the truth, or
    to BMA if the lags are unknown.
    """
    tokens = batch.tokens
    rows = scored_positions(first_position(task), tokens.shape[1])
    laws = {"model": law, "bma": bma(tokens, task), "ml": maximum_likelihood(tokens, task)}
    laws["stationary"] = stationary_law(tokens, task)
    reference = truth(batch, task) if lags_known else laws["bma"]
    kl = {name: divergence(reference, each) for name, each in laws.items()}
    to_reference = {name: each[:, rows].mean(dim=-1) for name, each in kl.items()}
    by_position = {name: each[:, :-1].mean(dim=0) for name, each in kl.items()}
    others = [name for name in laws if name != "bma"]
    lost = {name: divergence(laws["bma"], laws[name])[:, rows].mean(dim=-1) for name in others}
    right = {name: _nearest_lag(laws[name], batch, task) for name in ("model", "bma", "ml")}
    return LawReading(
        kl={name: interval(values) for name, values in to_reference.items()},
        to_bma={name: interval(values) for name, values in lost.items()},
        lag_accuracy={name: interval(each) for name, each in right.items() if len(each) > 1},
        by_position={name: tuple(values.tolist()) for name, values in by_position.items()},
        words=_words(lost["model"], lost["ml"], lost["stationary"]),
    )


def interval(values: Float[Tensor, " batch"]) -> Interval:
    """Return the mean over sequences with its interval; a value that is infinite in one
    sequence has an infinite mean.
    """
    mean, error = estimate(values.double()).pair()
    return (
        Interval(mean, mean - 2 * error, mean + 2 * error)
        if math.isfinite(mean)
        else Interval(mean, mean, mean)
    )


def as_law(
    given: Any, batch: Batch, task: CausalTask
) -> tuple[Float[Tensor, "batch time state"], bool]:
    """Return a distribution that sums to 1, and whether the input was logits (numbers
    below 0); raise a FieldError if invalid.
    """
    found, shape = as_numbers("law", given), (*batch.tokens.shape, task.num_states)
    law, rounding = found.double(), rounding_of(found)
    if law.shape != shape:
        raise FieldError(
            "law", f"law must be of shape (batch, time, state) = {shape}; got {tuple(law.shape)}"
        )
    if torch.isnan(law).any() or torch.isposinf(law).any() or torch.isneginf(law).all(dim=-1).any():
        raise FieldError("law", "law must hold finite numbers")
    sums = law.sum(dim=-1)
    if law.min() < -rounding:
        return torch.softmax(law, dim=-1), True
    if (sums - 1).abs().max() > rounding:
        ends = f"from {sums.min():.4g} to {sums.max():.4g}"
        raise FieldError(
            "law",
            f"law must sum to 1 over the last axis; got sums {ends} (softmax logits that are all positive)",
        )
    law = law.clamp_min(0)
    return law / law.sum(dim=-1, keepdim=True), False


def as_numbers(field: str, given: Any) -> Tensor:
    """Return a tensor, array or list of numbers as a tensor on the CPU; raise a
    FieldError if it is none.
    """
    try:
        found = torch.as_tensor(given).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        found = None
    if found is None or found.is_complex():
        raise FieldError(
            field,
            f"{field} must be real numbers in a tensor or an array; got {type(given).__name__}",
        )
    return found


def rounding_of(given: Tensor) -> float:
    """Return the distance from 1 that rounding may cause in the sum of a softmax of
    this dtype.
    """
    return max(1e-3, 4 * torch.finfo(given.dtype).eps) if given.is_floating_point() else 0.0


def _words(
    model: Float[Tensor, " batch"], ml: Float[Tensor, " batch"], stationary: Float[Tensor, " batch"]
) -> str:
    """Return the verdict in words, from the loss relative to Bayes, sequence by
    sequence.
    """
    if interval(model).high <= LIKE_BMA:
        return f"Predicts like BMA (within {LIKE_BMA:g} nats)"
    if interval(_difference(model, ml)).high < 0:
        return "Predicts better than maximum likelihood, not as well as BMA"
    if interval(_difference(model, stationary)).high >= 0:
        return "Predicts no better than the stationary distribution"
    if interval(_difference(model, ml)).low > 0:
        return "Predicts worse than maximum likelihood, better than the stationary distribution"
    return "Predicts about as well as maximum likelihood"


def _difference(a: Float[Tensor, " batch"], b: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Return the difference sequence by sequence; it is 0 if both are infinite."""
    return torch.where(a == b, 0.0, a - b)


def _nearest_lag(
    law: Float[Tensor, "batch time state"], batch: Batch, task: CausalTask
) -> Float[Tensor, " sequence"]:
    """Return how often the true lag's distribution is the nearest, per sequence with
    differing hypotheses.
    """
    rows = scored_positions(first_position(task), batch.tokens.shape[1])
    labels = torch.tensor(task.hypotheses)
    batches = [Batch(batch.tokens, torch.full_like(batch.lags, label)) for label in task.hypotheses]
    each = [truth(one, task)[:, rows] for one in batches]
    own = truth(batch, task)[:, rows]
    alike = torch.stack([(one - own).abs().amax(dim=-1) < 1e-9 for one in each], dim=-1)
    far = torch.stack([divergence(one, law[:, rows]) for one in each], dim=-1)
    telling = alike.sum(dim=-1) == 1
    right = labels[far.argmin(dim=-1)] == batch.lags[:, None]
    count = telling.sum(dim=-1)
    return ((right & telling).sum(dim=-1) / count)[count > 0]
