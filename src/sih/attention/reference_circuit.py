"""The construction that a trained model is compared with, and its sequences."""

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
    """Activations of the constructed circuit on a batch."""

    task: Task
    batch: Batch
    heads: tuple[int, ...]
    rows: slice
    """Queries from the first where the construction equals its closed form to the last
    but one. The last query has no next token, so no model is trained there."""
    attention: list[Float[Tensor, "batch _ query key"]]


def run_reference(task: Task, batch: Batch, heads: int | None = None) -> Reference:
    """Return the construction's activations on a batch.

    It has this number of second-layer heads, or the least that loses nothing.
    """
    built = reference_model(task, heads, dtype=torch.float32)
    rows = slice(built.circuit.first_exact_position, batch.tokens.shape[1] - 1)
    return Reference(
        task, batch, built.config.heads, rows, list(built.trace(batch.tokens).attention)
    )


def reference_model(
    task: Task, heads: int | None = None, *, dtype: torch.dtype = torch.float64
) -> DisentangledTransformer:
    """Return the paper's construction with this number of second-layer heads.

    By default it has the least number that loses nothing. Fewer leave transitions out,
    and more are not needed. Two lags with one head have a circuit of their own (App.
    H).
    """
    if heads is None or heads >= least_heads(task.lags).heads:
        return construct(task, dtype=dtype)
    if len(task.lags) == 2:
        return construct(task, target="two-lags", dtype=dtype)
    return construct(task, heads=heads, third="position", dtype=dtype)


def sequence_of_lag(task: Task, lag: int, *, rng: torch.Generator) -> Int[Tensor, "1 time"]:
    """Return the first sequence drawn that has this lag.

    Its first max_lag tokens are stationary, as in all sequences.
    """
    if lag not in task.lags:
        raise ValueError(f"the true lag is one of the task's, {task.lags}; got {lag}")
    while True:
        batch = sample(task, 64, rng=rng)
        if (batch.lags == lag).any():
            return batch.tokens[batch.lags == lag][:1]
