"""How far a prediction is from the truth."""

import torch
from jaxtyping import Float
from torch import Tensor

from sih.predictors import known_lag
from sih.task import Batch, CausalTask, MatrixTask, Task


def kl_to_truth(
    prediction: Float[Tensor, "batch time state"], batch: Batch, task: MatrixTask
) -> Float[Tensor, "batch time"]:
    r"""Measure how far a prediction q is from the true law p of the next token, $D_{KL}(p \,\|\, q)$ in nats.

    At every position. The truth knows the lag: $p = P_{s_{i-k+1},\,\cdot}$, or the stationary law while the next token
    is one of the first max_lag. Paper: Eq. (1) and the vertical axis of its Fig. 4.
    """
    return divergence(known_lag(batch.tokens, batch.lags, task), prediction)


def divergence(p: Float[Tensor, "*batch state"], q: Float[Tensor, "*batch state"]) -> Float[Tensor, "*batch"]:
    r"""Measure $D_{KL}(p \,\|\, q)$ in nats, infinite where q rules out what p does not."""
    return (torch.xlogy(p, p) - torch.xlogy(p, q.to(p))).sum(dim=-1)


def mean_kl(kl: Float[Tensor, "batch time"], task: Task) -> Float[Tensor, " batch"]:
    """Average each sequence's KL past the first max_lag positions, where the context says something of the lag."""
    return kl[:, task.max_lag :].mean(dim=-1)


def lag_accuracy(
    weights: Float[Tensor, "batch time hypothesis"], batch: Batch, task: CausalTask
) -> Float[Tensor, " time"]:
    """Give the fraction of sequences whose own lag has the largest weight (ties go to the smallest lag)."""
    chosen = torch.tensor(task.hypotheses, device=weights.device)[weights.argmax(dim=-1)]
    return (chosen == batch.lags[:, None]).to(torch.float64).mean(dim=0)
