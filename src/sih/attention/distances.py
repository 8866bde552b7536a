r"""Agreement of a model with the construction of the same number of second-layer heads.

All numbers are measured on the same sequences:

- layer 1: correlation of the scores with $\log P_{s_j,s_i}$ over the keys j, with a
  constant per query subtracted, since softmax ignores it. There are three: over all
  causal keys; over the keys at the lags; over all causal keys with the part that
  positions explain removed;
- every layer: total variation of the rows of attention, with heads matched, and that of
  uniform attention over the past;
- layer 2: the share of the scores' variance within a query that the offset i - j
  explains (how diagonal its maps are), and the share that both positions explain. In
  the construction the offset explains everything;
- layer 3: the share of its attention on the token that the true lag copies,
  $i + 1 - k$, and on all lags' tokens, along the sequence. Beside it stand the
  posterior of the true lag (the Bayes average's weight) and the construction's share.

A model with another number of layers is compared by its first and last layers. Lag 1
copies the query's own token, which is in the residual stream anyway. A model need not
attend to it, and some do not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.attention.correlation import (
    Maps,
    explained_variance,
    pair_log_probabilities,
    score_correlation,
)
from sih.attention.head_matching import match_heads, total_variation, uniform_attention
from sih.attention.head_reading import queries_read
from sih.attention.reference_circuit import Reference
from sih.base.stats import estimate, ratio_of_means
from sih.models.base import Model
from sih.models.offsets import attention_at
from sih.predictors.evidence import lag_posterior
from sih.task import Batch, Task

Measured = tuple[float, float]
"""A mean and its standard error."""
KEYS = ("lags", "causal", "tokens")
"""Keys of the first layer's correlation: at the lags; all causal; all, without
positions' part."""
CHUNK = 64
"""Sequences traced at a time."""
MATCHED = 16
"""Sequences on which heads are matched."""


@dataclass(frozen=True)
class Selection:
    """The last layer's attention to the true lag's token, and the posterior.

    Both are means over `sequences` sequences and the positions compared. `relative` is
    the ratio of the two means.
    """

    selected: Measured
    posterior: Measured
    relative: Measured
    sequences: int


@dataclass(frozen=True, eq=False)
class Agreement:
    """Agreement of one model with the construction.

    Pairs are a mean and its standard error over sequences, of queries `first` to the
    last but one.
    """

    lags: tuple[int, ...]
    heads: tuple[int, ...]
    reference_heads: tuple[int, ...]
    """Heads of the construction it is compared with."""
    first: int
    correlation: dict[str, Measured]
    """Correlation of the first layer's scores with log P, by `KEYS`."""
    variation: dict[str, Measured]
    """Total variation by the construction's layer. "2" is missing unless the model has
    three layers."""
    uniform: dict[str, Measured]
    """The same for uniform attention over the past."""
    second: dict[str, Measured]
    """Share of the variance of the second layer's scores explained by "offset" and by
    "positions".

    It is over the tokens that have a parent, a mean over heads, and empty unless the
    model has three layers.
    """
    parents: Measured
    """Share of the first layer's attention on the tokens at the lags."""
    shares: dict[str, Measured]
    """Shares of attention. selected: on the true lag's token. candidates: on all lags'
    tokens. posterior: the exact weight. constructed: the construction's share."""
    selected_by_lag: dict[str, Measured]
    """Share on the true lag's token, by lag (of lags with at least two sequences)."""
    selection: Selection
    """Share on the true lag's token, and the posterior, on these sequences."""
    by_position: dict[str, Float[Tensor, " position"]]
    """The shares at every position from the first that a lag predicts from
    (`lags[-1] - 1`)."""
    by_position_error: dict[str, Float[Tensor, " position"]]


@torch.no_grad()
def compare(
    attention: Sequence[Float[Tensor, "batch _ query key"]],
    scores: Sequence[Float[Tensor, "batch _ query key"]],
    built: Reference,
) -> Agreement:
    """Return how far a model's heads agree with the construction's.

    The model may be of any kind, on the reference's task and batch. `attention[layer]`
    and `scores[layer]` (before the softmax) stack the heads of a layer. Only the first
    two layers' scores are used.
    """
    task, batch, rows = built.task, built.batch, built.rows
    attention = [layer.float() for layer in attention]
    heads = tuple(layer.shape[1] for layer in attention)
    if len(heads) < 2:
        raise ValueError(
            "a model must have at least 2 layers, to compare the first and the last; "
            f"got heads {heads}"
        )
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
    first, last = (
        h for layer in ("1", "3") for h in matched[layer] if h is not None
    )  # the construction has one head in each of these layers
    parents = attention_at(attention[0][:, first], task.lags).sum(dim=-1)
    shares = _shares(attention[-1][:, last], built)
    selected = shares["selected"][:, rows].mean(dim=-1)
    read = queries_read(task, batch.tokens.shape[1])
    along = {
        what: estimate(values[:, task.max_lag - 1 : rows.stop]) for what, values in shares.items()
    }
    averaged = {what: measured(values[:, rows].mean(dim=-1)) for what, values in shares.items()}
    made_by = {lag: batch.lags == lag for lag in task.lags}
    by_lag = {str(lag): measured(selected[own]) for lag, own in made_by.items() if own.sum() > 1}
    chosen, posterior = (shares[what][:, read].mean(dim=-1) for what in ("selected", "posterior"))
    return Agreement(
        *(task.lags, heads, built.heads, rows.start),
        correlation=_correlations(scores[0][:, first], built),
        variation=variation,
        uniform=uniform,
        second=_second_layer(scores[1], built) if len(heads) == 3 else {},
        parents=measured(parents[:, rows].mean(dim=-1)),
        shares=averaged,
        selected_by_lag=by_lag,
        selection=selection_of(chosen, posterior),
        by_position={what: found.mean for what, found in along.items()},
        by_position_error={what: found.error for what, found in along.items()},
    )


@torch.no_grad()
def selection(model: Model, task: Task, batch: Batch) -> Selection:
    """Return the last layer's attention to the true lag's token.

    It is that of the head with most attention there. Queries are those at which
    `sih.diagnose` reads heads.
    """
    rows = queries_read(task, batch.tokens.shape[1])
    parts = zip(batch.tokens.split(CHUNK), batch.lags.split(CHUNK), strict=True)
    last = ((model.trace(tokens).between_tokens[-1], lags) for tokens, lags in parts)
    shares = [
        on_true_lag(attention, lags, task)[..., rows].mean(dim=-1) for attention, lags in last
    ]
    found = torch.cat(shares).double()
    posterior = on_lag(lag_posterior(batch.tokens, task), batch.lags, task)[:, rows].mean(dim=-1)
    return selection_of(found[:, int(found.mean(dim=0).argmax())], posterior)


def selection_of(
    selected: Float[Tensor, " batch"], posterior: Float[Tensor, " batch"]
) -> Selection:
    """Return the means of share and posterior over sequences, and their ratio."""
    relative = ratio_of_means(selected.double(), posterior.double()).pair()
    return Selection(measured(selected), measured(posterior), relative, len(selected))


def on_true_lag(
    attention: Float[Tensor, "batch head query key"], lags: Int[Tensor, " batch"], task: Task
) -> Float[Tensor, "batch head query"]:
    """Return each head's attention on the token that the true lag copies."""
    copied = [
        attention_at(head, [lag - 1 for lag in task.lags]) for head in attention.unbind(dim=1)
    ]
    return torch.stack([on_lag(head, lags, task) for head in copied], dim=1)


def on_lag(
    weights: Float[Tensor, "batch query lag"], lags: Int[Tensor, " batch"], task: Task
) -> Float[Tensor, "batch query"]:
    """Return the weight of each sequence's true lag."""
    is_lag = (lags[:, None] == torch.tensor(task.lags))[:, None]
    return (weights * is_lag).sum(dim=-1)


def summary(found: Agreement) -> dict[str, Measured]:
    """Return the numbers that a seed may change, by name."""
    return {
        **{f"correlation, {keys}": found.correlation[keys] for keys in KEYS},
        **{f"variation, layer {layer}": value for layer, value in found.variation.items()},
        **{f"layer 2, by {what}": value for what, value in found.second.items()},
        "parents": found.parents,
        "selected": found.shares["selected"],
        "candidates": found.shares["candidates"],
    }


def measured(values: Float[Tensor, " batch"]) -> Measured:
    """Return the mean over sequences, with its standard error."""
    return estimate(values).pair()


def _second_layer(
    scores: Float[Tensor, "batch head query key"], built: Reference
) -> dict[str, Measured]:
    keys = _past(built) & (torch.arange(scores.shape[-1]) >= built.task.max_lag)
    heads = scores.unbind(dim=1)
    return {
        "offset": measured(
            torch.stack([explained_variance(x, keys, "offset") for x in heads]).mean(dim=0)
        ),
        "positions": measured(
            torch.stack([explained_variance(x, keys, "positions") for x in heads]).mean(dim=0)
        ),
    }


def _correlations(scores: Maps, built: Reference) -> dict[str, Measured]:
    position = torch.arange(scores.shape[-1])
    past = _past(built)
    at_lags = past & torch.isin(position[:, None] - position, torch.tensor(built.task.lags))
    log_p = pair_log_probabilities(built.batch.tokens, built.task.P)
    return {
        "lags": measured(score_correlation(scores, log_p, at_lags)),
        "causal": measured(score_correlation(scores, log_p, past)),
        "tokens": measured(score_correlation(scores, log_p, past, apart_from_positions=True)),
    }


def _past(built: Reference) -> Bool[Tensor, "query key"]:
    """Return the mask of (query, key) pairs that enter the comparison."""
    position = torch.arange(built.batch.tokens.shape[1])
    compared = (position >= built.rows.start) & (position < built.rows.stop)
    return torch.logical_and(position <= position[:, None], compared[:, None])


def _shares(last: Maps, built: Reference) -> dict[str, Float[Tensor, "batch query"]]:
    """Return the last layer's attention to the lags' tokens, at every position."""
    task, batch = built.task, built.batch
    is_lag = (batch.lags[:, None] == torch.tensor(task.lags))[:, None]
    copied = [k - 1 for k in task.lags]
    found, wanted = (
        attention_at(attention, copied) for attention in (last, built.attention[2][:, 0])
    )
    return {
        "selected": (found * is_lag).sum(dim=-1),
        "candidates": found.sum(dim=-1),
        "posterior": (lag_posterior(batch.tokens, task) * is_lag).sum(dim=-1),
        "constructed": (wanted * is_lag).sum(dim=-1),
    }
