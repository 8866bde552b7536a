r"""One model against the construction with as many second-layer heads, on the same sequences.

- layer 1: correlation of the scores with $\log P_{s_j,s_i}$ over the keys j, a constant per query taken off, since
  softmax does not see it: over all causal keys; over the keys at the lags; over all causal keys and apart from what
  depends on positions alone;
- every layer: total variation of the rows of attention, heads matched; beside that of a head which is uniform over
  the past;
- layer 2: how much of the scores' variance within a query comes from the offset i - j alone, that is how diagonal its
  maps are, and how much from the two positions; the construction's has all from the offset;
- layer 3: the share of its attention on the token that the true lag copies, $i + 1 - k$, and on all lags' together,
  along the sequence; beside the posterior of the true lag (the Bayes average's weight) and the construction's share.

A model with another number of layers is compared by its first and last. Lag 1 copies the query's own token, which the
residual stream holds anyway: a model need not attend to it, and some do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.analysis.correlation import (
    Measured,
    explained,
    mass_at,
    match_heads,
    measured,
    pair_log_probabilities,
    score_correlation,
    total_variation,
    uniform_attention,
)
from sih.analysis.reference_circuit import counterpart
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.sites import Trace
from sih.models.standard.transformer import Transformer
from sih.predictors import lag_posterior
from sih.task import Batch, Task

LAYERS = ("1", "2", "3")
"""Of the construction."""
KEYS = ("lags", "causal", "tokens")
"""Of the first layer's correlation: keys at the lags; all causal keys; the same, apart from positions."""
MATCHED = 16
"""Sequences that heads are matched on."""


@dataclass(frozen=True)
class Agreement:
    """One model. Pairs are a mean and its standard error over sequences, of queries `first` to the last but one."""

    lags: tuple[int, ...]
    heads: tuple[int, ...]
    counterpart: tuple[int, ...]
    """Heads of the construction it is compared with."""
    first: int
    correlation: dict[str, Measured]
    """Of the first layer's scores with log P, by `KEYS`."""
    variation: dict[str, Measured]
    """By the construction's layer; no "2" for a model that has not three layers."""
    uniform: dict[str, Measured]
    """The same for uniform attention over the past."""
    second: dict[str, Measured]
    """Part of the variance of the second layer's scores by "offset" and by "positions", over the tokens that a lag has
    made, mean over heads; empty for a model that has not three layers."""
    parents: Measured
    """Share of the first layer's attention on the tokens at the lags."""
    shares: dict[str, Measured]
    """selected, candidates: on the true lag's token, on all lags'; posterior; constructed: the construction's share."""
    selected_by_lag: dict[str, Measured]
    """The share on the true lag's token by the true lag (of those that made two sequences or more)."""
    along: dict[str, list[float]]
    """The shares at every position from the first that a lag predicts from (`lags[-1] - 1`)."""
    along_error: dict[str, list[float]]


@dataclass(frozen=True, eq=False)
class Reference:
    """What the construction does on a batch."""

    task: Task
    batch: Batch
    heads: tuple[int, ...]
    rows: slice
    """From the first query where the construction equals its closed form to the last but one: what the last position
    predicts is not in the sequence, so a model's last position was never trained."""
    attention: list[Float[Tensor, "batch _ query key"]]


def reference(task: Task, batch: Batch, heads: int | None = None) -> Reference:
    """With as many second-layer heads, or the least that lose nothing."""
    built = counterpart(task, heads, dtype=torch.float32)
    rows = slice(built.circuit.first_row, batch.tokens.shape[1] - 1)
    return Reference(task, batch, built.config.heads, rows, list(built.trace(batch.tokens).attention))


@torch.no_grad()
def agreement(model: Transformer | DisentangledTransformer, built: Reference) -> Agreement:
    """Any model of the reference's task against it."""
    task, batch, rows = built.task, built.batch, built.rows
    heads = model.config.heads
    if len(heads) < 2:
        raise ValueError(f"a model of one layer has no first and last to compare; got heads {heads}")
    trace = model.trace(batch.tokens)
    attention = [layer.float() for layer in trace.attention]
    layer_of = {"1": 0, "3": len(heads) - 1} | ({"2": 1} if len(heads) == 3 else {})
    flat = uniform_attention(batch.tokens.shape[1])
    variation, uniform, matched = {}, {}, {}
    for layer in sorted(layer_of):
        found, wanted = attention[layer_of[layer]], built.attention[int(layer) - 1]
        matched[layer] = match_heads(found[:MATCHED], wanted[:MATCHED], rows.start)
        pairs = [(h, j) for j, h in enumerate(matched[layer]) if h is not None]
        far = [total_variation(found[:, h], wanted[:, j])[:, rows].mean(dim=-1) for h, j in pairs]
        variation[layer] = measured(torch.stack(far).mean(dim=0))
        uniform[layer] = measured(total_variation(flat, wanted)[..., rows].mean(dim=(1, 2)))
    first, last = (h for layer in ("1", "3") for h in matched[layer] if h is not None)  # the construction has one each
    parents = mass_at(attention[0][:, first], task.lags).sum(dim=-1)
    shares = _shares(attention[-1][:, last], built)
    selected = shares["selected"][:, rows].mean(dim=-1)
    shown = slice(task.max_lag - 1, rows.stop)
    return Agreement(
        task.lags,
        heads,
        built.heads,
        rows.start,
        _correlations(trace[f"1.{first + 1}/scores"], built),
        variation,
        uniform,
        _second_layer(trace, built) if len(heads) == 3 else {},
        measured(parents[:, rows].mean(dim=-1)),
        {what: measured(values[:, rows].mean(dim=-1)) for what, values in shares.items()},
        {str(k): measured(selected[batch.lags == k]) for k in task.lags if (batch.lags == k).sum() > 1},
        {what: values[:, shown].mean(dim=0).tolist() for what, values in shares.items()},
        {what: (values[:, shown].std(dim=0) / math.sqrt(len(values))).tolist() for what, values in shares.items()},
    )


def _second_layer(trace: Trace, built: Reference) -> dict[str, Measured]:
    position = torch.arange(trace.tokens.shape[1])
    rows = (position >= built.rows.start) & (position < built.rows.stop)
    keys = (position <= position[:, None]) & (position >= built.task.max_lag) & rows[:, None]
    scores = [trace[f"2.{head}/scores"] for head in range(1, trace.heads[1] + 1)]
    return {
        "offset": measured(torch.stack([explained(x, keys, "offset") for x in scores]).mean(dim=0)),
        "positions": measured(torch.stack([explained(x, keys, "positions") for x in scores]).mean(dim=0)),
    }


def _correlations(scores: Float[Tensor, "batch query key"], built: Reference) -> dict[str, Measured]:
    position = torch.arange(scores.shape[-1])
    offset = position[:, None] - position
    past = (offset >= 0) & ((position >= built.rows.start) & (position < built.rows.stop))[:, None]
    at_lags = past & torch.isin(offset, torch.tensor(built.task.lags))
    log_p = pair_log_probabilities(built.batch.tokens, built.task.P)
    return {
        "lags": measured(score_correlation(scores, log_p, at_lags)),
        "causal": measured(score_correlation(scores, log_p, past)),
        "tokens": measured(score_correlation(scores, log_p, past, apart_from_positions=True)),
    }


def _shares(last: Float[Tensor, "batch query key"], built: Reference) -> dict[str, Float[Tensor, "batch query"]]:
    """At every position; the token that lag k copies is k - 1 before the query."""
    task, batch = built.task, built.batch
    is_lag = (batch.lags[:, None] == torch.tensor(task.lags))[:, None]
    found, wanted = (mass_at(attention, [k - 1 for k in task.lags]) for attention in (last, built.attention[2][:, 0]))
    return {
        "selected": (found * is_lag).sum(dim=-1),
        "candidates": found.sum(dim=-1),
        "posterior": (lag_posterior(batch.tokens, task) * is_lag).sum(dim=-1),
        "constructed": (wanted * is_lag).sum(dim=-1),
    }


def headline(found: Agreement) -> dict[str, Measured]:
    """The numbers that a seed may change, by name."""
    return {
        **{f"correlation, {keys}": found.correlation[keys] for keys in KEYS},
        **{f"variation, layer {layer}": value for layer, value in found.variation.items()},
        **{f"layer 2, by {what}": value for what, value in found.second.items()},
        "parents": found.parents,
        "selected": found.shares["selected"],
        "candidates": found.shares["candidates"],
    }
