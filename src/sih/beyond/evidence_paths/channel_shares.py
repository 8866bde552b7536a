r"""Measures through which channel a model's evidence goes: *carried* by the heads before the last layer, or *looked*.

All changes act on the last layer's scores alone (its queries and keys), so that what it copies stays as it is:

- `attention`: where the heads of layers 2 .. L - 1 looked, replaced by its mean over sequences, what they read live;
- `values`: what these heads read, replaced by its mean, where they looked live;
- `both`; and `layer 1 at keys`: what layer 1 wrote, as the keys of layer 2 show it, at its mean.

With donors the same values come from sequences of another lag. In the later half of the rows, how often is the
candidate with the most attention that of the sequence's own lag, and how often that of the donor's?
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.attention.distances import Measured, measured
from sih.attention.head_matching import total_variation
from sih.attention.interventions import CHUNK, mean_values, passes, values_until
from sih.base.stats import paired
from sih.beyond.evidence_paths.score_shares import evidence_flow
from sih.models.base import Model
from sih.models.offsets import attention_at
from sih.models.sites import Trace
from sih.predictors.metrics import kl_to_truth, mean_kl
from sih.task import Batch, Task, sample


@dataclass(frozen=True)
class Channels:
    """Holds what a model's choice of a lag rests on. Pairs are a mean and its standard error over sequences."""

    kl: dict[str, Measured]
    """Mean KL past max_lag: "intact", and with each change of the module's docstring."""
    added: dict[str, Measured]
    """The same less the intact model's, sequence by sequence."""
    picks: dict[str, tuple[float, float]]
    """With a donor's attention or values: how often its own lag is picked, and the donor's."""
    shares: dict[str, Measured]
    """Of the evidence, by `sih.evidence_flow` along paths: looked, carried, direct, embedding."""
    by_head: dict[str, dict[str, float]]
    """Of each head: its shares looked and carried, and how far its rows are from their mean (total variation)."""


@torch.no_grad()
def read_channels(
    model: Model, task: Task, batch: Batch, reference: Batch, rng: torch.Generator
) -> Channels:
    """Measure the channels of a model of three layers or more on a batch, with means over the reference."""
    heads, last, tokens = model.config.heads, len(model.config.heads), batch.tokens
    if last < 3:
        raise ValueError(
            f"channels run through a layer between the first and the last; got heads {heads}"
        )
    middle = [
        f"{layer}.{head}" for layer in range(2, last) for head in range(1, heads[layer - 1] + 1)
    ]
    scores = [
        f"{last}.{head}/{use}" for head in range(1, heads[-1] + 1) for use in ("query", "key")
    ]
    first = [f"1.{head}/output" for head in range(1, heads[0] + 1)]
    keys = [f"2.{head}/key" for head in range(1, heads[1] + 1)]
    names = {
        "attention": [f"{head}/attention" for head in middle],
        "values": [f"{head}/value" for head in middle],
    }
    names["both"] = names["attention"] + names["values"]
    means = mean_values(model, reference, names["both"] + first)
    shown = [
        values_until(model, part, {name: means[name] for name in first}, keys)
        for part in tokens.split(CHUNK)
    ]
    changes = {what: {name: means[name] for name in changed} for what, changed in names.items()}
    changes["layer 1 at keys"] = {name: torch.cat([part[name] for part in shown]) for name in keys}
    kl = {"intact": _kl(model, passes(model, tokens, {}), batch, task)}
    for what, values in changes.items():
        kl[what] = _kl(model, passes(model, tokens, values, scores), batch, task)
    donors = other_lags(batch, task, rng)
    flow = evidence_flow(model, task, batch, by="paths")
    trace = model.trace(tokens[:CHUNK])
    by_head = {}
    for name in middle:
        far = total_variation(trace[f"{name}/attention"].double(), means[f"{name}/attention"])
        by_head[name] = {
            "looked": flow.shares[f"{name}:attention"],
            "carried": flow.shares[f"{name}:values"],
            "variation": far[:, model.first + task.max_lag : -1].mean().item(),
        }
    costs = {what: paired(kl[what], kl["intact"]).pair() for what in changes}
    picks = {
        what: _picks(model, task, batch, donors, names[what], scores)
        for what in ("attention", "values")
    }
    shares = {name: (share, flow.channel_errors[name]) for name, share in flow.channels.items()}
    return Channels(
        {what: measured(values) for what, values in kl.items()}, costs, picks, shares, by_head
    )


def other_lags(batch: Batch, task: Task, rng: torch.Generator) -> Batch:
    """Draw for each sequence one of another lag, all others alike: its counterfactual."""
    shift = torch.randint(1, len(task.lags), (len(batch.lags),), generator=rng)
    index = (batch.lags[:, None] == torch.tensor(task.lags)).long().argmax(dim=-1)
    lags = torch.tensor(task.lags)[(index + shift) % len(task.lags)]
    tokens = torch.empty_like(batch.tokens)
    for lag in task.lags:
        rows = lags == lag
        if rows.any():
            tokens[rows] = sample(task, int(rows.sum()), rng=rng, lag=lag).tokens[
                :, : batch.tokens.shape[1]
            ]
    return Batch(tokens, lags)


def _kl(model: Model, runs: Iterable[Trace], batch: Batch, task: Task) -> Float[Tensor, " batch"]:
    """Return the mean KL of each sequence."""
    law = torch.cat([model.law(trace.output) for trace in runs])
    return mean_kl(kl_to_truth(law, batch, task), task)


def _picks(
    model: Model, task: Task, batch: Batch, donors: Batch, names: list[str], into: list[str]
) -> tuple[float, float]:
    chosen = []
    for mine, theirs in zip(batch.tokens.split(CHUNK), donors.tokens.split(CHUNK), strict=True):
        for trace in passes(model, mine, values_until(model, theirs, {}, names), into):
            chosen.append(picked(trace, task))
    pick = torch.cat(chosen)
    own, other = (
        (pick == lags[:, None]).double().mean().item() for lags in (batch.lags, donors.lags)
    )
    return own, other


def picked(trace: Trace, task: Task) -> Int[Tensor, "batch row"]:
    """Give the lag whose token the last layer pays most, in the later half of the rows but the last."""
    attention = attention_at(trace.between_tokens[-1].sum(dim=1), [lag - 1 for lag in task.lags])
    rows = attention[:, attention.shape[1] // 2 : -1]
    return torch.tensor(task.lags)[rows.argmax(dim=-1)]
