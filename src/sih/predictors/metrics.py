"""Distances of predictions to the truth."""

from collections.abc import Sequence
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError, described, is_concrete
from sih.predictors.predictors import truth
from sih.task import Batch, CausalTask, check_batch, check_task, first_with_parent

LAW_TOLERANCE = 1e-3
"""Largest difference to 1 of a distribution's sum. It is far above rounding in any
format."""


def kl_to_truth(
    prediction: Float[Tensor, "batch time state"], batch: Batch, task: CausalTask
) -> Float[Tensor, "batch time"]:
    r"""Return the KL from the true distribution p of the next token to a prediction q.

    This is $D_{KL}(p \,\|\, q)$ in nats, at every position. The truth (`sih.truth`)
    knows the lag, and the sequence's own matrix where that is drawn:
    $p = P_{s_{i-k+1},\,\cdot}$. While the next token is one of the first max_lag, p is
    the initial distribution. Paper: Eq. (1) and the vertical axis of its Fig. 4.

    Args:
        prediction: (batch, time, state), q, the distribution of the next token at every
            position, as predictors and `model.predict` return it.
        batch: the sequences that the prediction is for.
        task: the task they were drawn from.

    Returns:
        The KL at every position, (batch, time).

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=64)
    >>> batch = sih.sample(task, size=100, rng=0)
    >>> kl = sih.kl_to_truth(sih.bma(batch.tokens, task), batch, task)  # (100, 64)
    >>> [round(kl[:, i].mean().item(), 4) for i in (4, 16, 63)]  # it learns the lag as it reads
    [0.0195, 0.0136, 0.006]
    """
    true_law = truth(batch, task)
    return divergence(true_law, check_law("prediction", prediction, tuple(true_law.shape)))


def check_law(
    name: str, law: Float[Tensor, "*batch state"], shape: tuple[int, ...]
) -> Float[Tensor, "*batch state"]:
    """Return probabilities of this shape that sum to 1, or raise a FieldError."""
    if not isinstance(law, Tensor) or law.shape != shape or not law.is_floating_point():
        raise FieldError(
            name, f"{name} must be distributions, a tensor of shape {shape}; got {described(law)}"
        )
    if is_concrete(law):
        gap = (law.detach().sum(dim=-1) - 1).abs().amax() if law.numel() else law.new_zeros(())
        if gap > LAW_TOLERANCE or (law < -LAW_TOLERANCE).any():
            found = f"numbers {law.min().item():.3g} to {law.max().item():.3g} with sums off by {gap.item():.3g}"
            raise FieldError(
                name,
                f"{name} must be probabilities that sum to 1, e.g. model.predict(tokens); got {found}",
            )
    return law


def divergence(
    p: Float[Tensor, "*batch state"], q: Float[Tensor, "*batch state"]
) -> Float[Tensor, "*batch"]:
    r"""Return $D_{KL}(p \,\|\, q)$ in nats, infinite where q is 0 and p is not."""
    return (torch.xlogy(p, p) - torch.xlogy(p, q.to(p))).sum(dim=-1)


def mean_kl(kl: Float[Tensor, "*batch time"], task: CausalTask) -> Float[Tensor, "*batch"]:
    """Return each sequence's mean KL, over positions max_lag to the last but one.

    The last position never counts: no token follows it, so no model is trained there.
    In a task of parents the mean begins at the first token that has a parent.

    Args:
        kl: (batch, time), e.g. of `sih.kl_to_truth`, or a mean over sequences, (time,).
        task: the task the sequences were drawn from.

    Returns:
        The mean of each sequence, (batch,), or one mean.

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=64)
    >>> batch = sih.sample(task, size=100, rng=0)
    >>> kl = sih.kl_to_truth(sih.stationary_law(batch.tokens, task), batch, task)
    >>> sih.mean_kl(kl, task).shape
    torch.Size([100])
    """
    check_task(task)
    if not isinstance(kl, Tensor) or kl.ndim == 0 or not kl.is_floating_point():
        wanted = "a tensor of shape (batch, time), e.g. of sih.kl_to_truth"
        raise FieldError("kl", f"kl must be {wanted}; got {described(kl)}")
    time = kl.shape[-1]
    first = first_with_parent(task.parents(max(time, task.length)))
    return kl[..., scored_positions(first, time)].mean(dim=-1)


def scored_positions(first: int, time: int) -> slice:
    """Return the positions of a mean KL: from `first` (max_lag) on, all but the last.

    >>> scored_positions(3, 8)
    slice(3, 7, None)
    """
    if time < first + 2:
        reason = f"a mean leaves out the first {first} and the last, which has no next token"
        raise FieldError("kl", f"kl must have at least {first + 2} positions: {reason}; got {time}")
    return slice(first, time - 1)


def mean_by_position(by_position: Sequence[float], max_lag: int) -> float:
    """Return the mean of KL by position, over the same positions as `mean_kl`.

    >>> mean_by_position([9.0, 1.0, 3.0, 9.0], 1)
    2.0
    """
    return fmean(by_position[scored_positions(max_lag, len(by_position))])


def lag_accuracy(
    weights: Float[Tensor, "batch time hypothesis"], batch: Batch, task: CausalTask
) -> Float[Tensor, " time"]:
    """Return the fraction of sequences in which the true lag has the largest weight.

    Ties go to the smallest lag. Where lags switch, the true lag is that of the next
    token. After the last token, it is the likeliest lag of a next token.

    Args:
        weights: (batch, time, hypothesis), e.g.
            `sih.lag_posterior(batch.tokens, task)`.
        batch: the sequences, with their lags.
        task: the task with these lags.

    Returns:
        The fraction at each position, (time,).

    >>> import sih
    >>> task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=64)
    >>> batch = sih.sample(task, size=100, rng=0)
    >>> right = sih.lag_accuracy(sih.lag_posterior(batch.tokens, task), batch, task)  # (64,)
    >>> [round(right[i].item(), 2) for i in (4, 16, 63)]
    [0.58, 0.72, 0.94]
    """
    check_batch(batch)
    check_task(task)
    size, time, count = (*batch.tokens.shape, len(task.hypotheses))
    fits = isinstance(weights, Tensor) and weights.ndim == 3 and weights.shape[::2] == (size, count)
    if not fits or weights.shape[1] > time:
        wanted = f"a tensor of shape ({size}, {time}, {count}), a weight for each lag"
        raise FieldError("weights", f"weights must be {wanted}; got {described(weights)}")
    chosen = weights.argmax(dim=-1, keepdim=True)
    true = task.true_weights(batch)[:, : weights.shape[1]].argmax(dim=-1, keepdim=True)
    return (chosen == true.to(chosen.device)).to(torch.float64).mean(dim=0).squeeze(-1)
