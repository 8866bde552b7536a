r"""Measures of the selective circuit in a model, one number for each part.

    correlation   layer 1: its scores with log P, over the keys at the lags (`score_correlation`)
    selected      last layer: attention to the token that the true lag copies, over the lag's posterior
    candidates    last layer: attention to the tokens that the lags copy
    copies        each layer below the last: its largest mean attention to one offset of 1 or more
    offsets       each layer below the last: that offset

All are means over sequences and over queries from a third of the length on. The last
query is left out, because no model is trained there. `selected` is over sequences whose
true lag is above 1, since the token that lag 1 copies is the query's own. Of several
heads in a layer, the one with the largest number counts: the largest absolute
correlation, and in the last layer the head that selects most.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.correlation import pair_log_probabilities, score_correlation
from sih.models import Model
from sih.models.offsets import attention_at
from sih.predictors.evidence import lag_posterior
from sih.task import Batch, Task

AT_ONCE = 64
"""Sequences in one forward pass, which bounds the memory."""


@dataclass(frozen=True)
class CircuitSigns:
    """Measures of the circuit in one model, on one batch."""

    correlation: float
    selected: float
    candidates: float
    copies: tuple[float, ...]
    offsets: tuple[int, ...]


@torch.no_grad()
def circuit_signs(model: Model, batch: Batch, task: Task) -> CircuitSigns:
    """Return the circuit's measures for a model, on sequences with one lag each."""
    time = batch.tokens.shape[1]
    first = max(time // 3, task.max_lag)
    if not (batch.lags > 1).any() or first >= time - 1 or not model.config.heads:
        wanted = (
            "a model with attention, a true lag above 1 and queries beyond a third of the length"
        )
        raise ValueError(f"signs of a circuit need {wanted}; got lags {task.lags}, length {time}")
    parts = [batch[start : start + AT_ONCE] for start in range(0, len(batch), AT_ONCE)]
    signs = [_signs(model, part, task, slice(first, time - 1)) for part in parts]
    correlation, selected, candidates, posterior = (
        torch.cat([values[what] for values in signs])
        for what in ("correlation", "selected", "candidates", "posterior")
    )
    lower = (
        torch.cat([values["copies"] for values in signs]).mean(dim=0).split(model.config.heads[:-1])
    )
    above = batch.lags > 1
    share = selected[above].mean(dim=0) / posterior[above].mean()
    head = int(share.argmax())
    follows = correlation.mean(dim=0)
    return CircuitSigns(
        correlation=follows[follows.abs().argmax()].item(),
        selected=share[head].item(),
        candidates=candidates[:, head].mean().item(),
        copies=tuple(layer.max().item() for layer in lower),
        offsets=tuple(1 + int(layer.argmax()) % layer.shape[1] for layer in lower),
    )


def _signs(model: Model, batch: Batch, task: Task, rows: slice) -> dict[str, Tensor]:
    """Return the measures of each sequence.

    Shapes are (sequence, head), or (sequence, head, offset) for the lower layers.
    """
    trace = model.trace(batch.tokens)
    layers = [layer.double() for layer in trace.between_tokens]
    scores = trace.scores[0][..., trace.first :, trace.first :].double().unbind(dim=1)
    is_lag = (batch.lags[:, None] == torch.tensor(task.lags)).double()
    copied = attention_at(layers[-1], [lag - 1 for lag in task.lags])[:, :, rows].mean(dim=2)
    posterior = lag_posterior(batch.tokens, task)[:, rows].mean(dim=1)
    far = range(1, rows.start + 1)
    lower = [attention_at(layer, far)[:, :, rows].mean(dim=2) for layer in layers[:-1]]
    follows = [_follows(each, batch, task, rows) for each in scores]
    copies = torch.cat(lower, dim=1) if lower else torch.zeros(len(batch), 0, len(far))
    return {
        "correlation": torch.stack(follows, dim=1),
        "selected": (copied * is_lag[:, None]).sum(dim=-1),
        "candidates": copied.sum(dim=-1),
        "posterior": (posterior * is_lag).sum(dim=-1),
        "copies": copies,
    }


def _follows(
    scores: Float[Tensor, "batch query key"], batch: Batch, task: Task, rows: slice
) -> Float[Tensor, " batch"]:
    """Return the correlation of scores with log P over the keys at the lags.

    Scores that do not vary have 0.
    """
    position = torch.arange(scores.shape[-1])
    compared = (position >= rows.start) & (position < rows.stop)
    at_lags = torch.isin(position[:, None] - position, torch.tensor(task.lags))
    keys = torch.logical_and(at_lags, compared[:, None])
    log_p = pair_log_probabilities(batch.tokens, task.P)
    return score_correlation(scores, log_p, keys).nan_to_num(0.0)
