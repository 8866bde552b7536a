"""Builds the construction that a trained model is compared with, and draws sequences to compare them on."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.circuits import construct
from sih.heads import least_heads
from sih.models.disentangled.dense import DisentangledTransformer
from sih.task import Batch, Task, sample


@dataclass(frozen=True, eq=False)
class Reference:
    """Holds what the construction does on a batch."""

    task: Task
    batch: Batch
    heads: tuple[int, ...]
    rows: slice
    """From the first query where the construction equals its closed form to the last but one: what the last position
    predicts is not in the sequence, so a model's last position was never trained."""
    attention: list[Float[Tensor, "batch _ query key"]]


def run_reference(task: Task, batch: Batch, heads: int | None = None) -> Reference:
    """Run the construction on a batch, with as many second-layer heads or the least that lose nothing."""
    built = reference_model(task, heads, dtype=torch.float32)
    rows = slice(built.circuit.first_exact_position, batch.tokens.shape[1] - 1)
    return Reference(
        task, batch, built.config.heads, rows, list(built.trace(batch.tokens).attention)
    )


def reference_model(
    task: Task, heads: int | None = None, *, dtype: torch.dtype = torch.float64
) -> DisentangledTransformer:
    """Build the paper's construction with as many second-layer heads, or with the least that lose nothing.

    Fewer heads than those leave transitions out; more are not needed. Two lags with one head have a circuit of
    their own (App. H).
    """
    if heads is None or heads >= least_heads(task.lags).heads:
        return construct(task, dtype=dtype)
    if len(task.lags) == 2:
        return construct(task, target="two-lags", dtype=dtype)
    return construct(task, heads=heads, third="position", dtype=dtype)


def sequence_of_lag(task: Task, lag: int, *, rng: torch.Generator) -> Int[Tensor, "1 time"]:
    """Draw the first sequence that this lag has made. (Its first max_lag tokens are stationary, as in all of them.)"""
    if lag not in task.lags:
        raise ValueError(f"the true lag is one of the task's, {task.lags}; got {lag}")
    while True:
        batch = sample(task, 64, rng=rng)
        if (batch.lags == lag).any():
            return batch.tokens[batch.lags == lag][:1]
