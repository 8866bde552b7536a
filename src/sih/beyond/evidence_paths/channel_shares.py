r"""Measurement of a model's evidence paths: through the values of middle heads, or
through their attention patterns.

All interventions change the last layer's scores alone (its queries and keys), so that
its values stay the same:

- `attention`: the attention patterns of layers 2 .. L - 1 are mean-ablated, with live
  values;
- `values`: the values of these heads are mean-ablated, with live attention patterns;
- `both`; and `layer 1 at keys`: layer 1's output, as the keys of layer 2 expose it, is
  mean-ablated.

With a patch source, the same activations come from a sequence of another lag. The
measurement is on the later half of the rows. How often does the candidate with the most
attention belong to the true lag, and how often to the source's lag?
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
    """Evidence paths of a model's choice of a lag. Pairs are a mean and its standard
    error over sequences.
    """

    kl: dict[str, Measured]
    """Mean KL beyond max_lag: "intact", and with each intervention of the module's
    docstring."""
    added: dict[str, Measured]
    """The same minus the unmodified model's, sequence by sequence."""
    picks: dict[str, tuple[float, float]]
    """With a patch source's attention or values: frequency of the true lag, and of the
    source's lag."""
    shares: dict[str, Measured]
    """Shares of the evidence by path, from `sih.evidence_flow`: looked (patterns),
    carried (values), direct, embedding."""
    by_head: dict[str, dict[str, float]]
    """For each head: its shares by patterns and values, and the distance of its rows
    from their mean (total variation)."""


@torch.no_grad()
def read_channels(
    model: Model, task: Task, batch: Batch, reference: Batch, rng: torch.Generator
) -> Channels:
    """Return the evidence paths of a model of three layers or more on a batch, with
    means over the reference.
    """
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
    """Return for each sequence a random one of another lag, with equal probabilities:
    its counterfactual.
    """
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
    """Return the lag of the candidate with the most attention in the last layer, in the
    later half of the rows except the last.
    """
    attention = attention_at(trace.between_tokens[-1].sum(dim=1), [lag - 1 for lag in task.lags])
    rows = attention[:, attention.shape[1] // 2 : -1]
    return torch.tensor(task.lags)[rows.argmax(dim=-1)]
