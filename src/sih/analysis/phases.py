r"""Reads from the weights how layer 2 looks by phase, and how layer 3 reads where it looked.

To first order, row i of head 2.h scores key m with $\sum_k a^{(1)}_{m,m-k}\, G_h(i-m+k)$: where layer 1 looked,
against the query's position. Layer 3 reads a key's row against the query's position, $R'_h(i-m)$, and the query's row
against the key's, $R_h(m-j)$. So a transition at offset o whose found lag is k moves the score of lag $k_0$ by

$$ \text{key's row: } \sum_h R'_h(o)\, G_h(o+1+k-k_0), \qquad \text{query's row: } \sum_h R_h(k_0-1-o)\, G_h(o+k). $$

They vote for the lag found where this matrix over (k, k0), less its row and column means, is a positive multiple of
the identity less its mean. All are means along diagonals, divided by the temperature, of models with one head in
layers 1 and 3.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.analysis.stream_pieces import score_matrix
from sih.models.base import Model
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer
from sih.task import Task

NEAR = 8
"""Offsets up to this one have weights of their own, and periods are sought beyond."""
PERIODS = range(2, 13)
ENOUGH = 0.9
"""The period of a function is the least whose residues explain so much of what the best explain."""


@dataclass(frozen=True, eq=False)
class Phases:
    """Holds the profiles of each second-layer head by offset, and what they vote for."""

    looks: dict[str, Float[Tensor, " offset"]]
    """G_h(o) for o = 0, 1, ..."""
    reads_key: dict[str, Float[Tensor, " offset"]]
    """R'_h(o) for o = 0, 1, ..."""
    reads_query: dict[str, Float[Tensor, " offset"]]
    """R_h(-o) for o = 0, 1, ..."""
    period: dict[str, int]
    """Of G_h past `NEAR`."""
    explained: dict[str, float]
    """How much of its variance there the residues modulo the period explain."""
    votes: dict[str, float]
    """ "key" and "query": the multiple of the identity, averaged over offsets past `NEAR`."""
    cosine: dict[str, float]
    """How near the matrix is to a multiple of the identity: 1 if it is one, -1 if of the opposite sign."""


def has_phases(model: Model, task: Task) -> bool:
    """Tell whether phases can be read: of this kind, with heads (1, H, 1), no MLPs, and offsets past `NEAR`."""
    heads, known = model.config.heads, isinstance(model, DisentangledTransformer)
    known = known or (isinstance(model, Transformer) and model.config.mlp_dim is None)
    three = len(heads) == 3 and heads[0] == heads[2] == 1
    return known and three and task.length >= NEAR + max(task.max_lag + 3, 5)


def read_phases(model: Model, task: Task) -> Phases:
    """Read the profiles of a model of heads (1, H, 1) without MLPs."""
    heads = model.config.heads
    if len(heads) != 3 or heads[0] != 1 or heads[2] != 1:
        raise ValueError(f"phases are read of models with heads (1, H, 1); got {heads}")
    looks, by_key, by_query = {}, {}, {}
    for head in range(1, heads[1] + 1):
        name = f"2.{head}"
        G, key, query = (
            block.double() / model.config.temperature for block in _blocks(model, head)
        )
        looks[name], by_key[name] = by_offset(G), by_offset(key)
        by_query[name] = by_offset(
            query.T
        )  # (m, j) with m before j: R(m - j) at j - m = o, in the lower triangle of its transpose
    far = range(NEAR + 1, task.length - max(task.lags) - 1)
    votes, cosine = {}, {}
    for row in ("key", "query"):
        W = torch.zeros(len(task.lags), len(task.lags), dtype=torch.float64)
        for a, k in enumerate(task.lags):
            for b, k0 in enumerate(task.lags):
                for name, G in looks.items():
                    if row == "key":
                        terms = [by_key[name][o] * G[o + 1 + k - k0] for o in far]
                    else:
                        terms = [by_query[name][o + 1 - k0] * G[o + k] for o in far]
                    W[a, b] += torch.stack(terms).mean()
        W = W - W.mean(0) - W.mean(1, keepdim=True) + W.mean()
        identity = torch.eye(len(W)).double() - 1 / len(W)
        votes[row] = (W.trace() / max(len(W) - 1, 1)).item()
        cosine[row] = ((W * identity).sum() / (W.norm() * identity.norm()).clamp_min(1e-300)).item()
    periods = {name: period(G) for name, G in looks.items()}
    return Phases(
        looks=looks,
        reads_key=by_key,
        reads_query=by_query,
        period={name: found[0] for name, found in periods.items()},
        explained={name: found[1] for name, found in periods.items()},
        votes=votes,
        cosine=cosine,
    )


def by_offset(block: Float[Tensor, "query key"]) -> Float[Tensor, " offset"]:
    """Average along the diagonals of the lower triangle: entry o is the mean over i of block[i, i - o]."""
    return torch.stack([block.diagonal(-offset).mean() for offset in range(len(block))])


def period(profile: Float[Tensor, " offset"]) -> tuple[int, float]:
    """Find the least period that explains nearly as much of the profile past `NEAR` as any, and how much that is.

    >>> period(torch.arange(40.0) % 4)
    (4, 1.0)
    """
    offset = torch.arange(NEAR + 1, len(profile))
    y = profile[NEAR + 1 :].double()
    if len(y) < 2 * PERIODS[0]:
        raise ValueError(f"a period is sought past offset {NEAR}; got a profile of {len(profile)}")
    variance = (y - y.mean()).square().sum().item()
    explained = {}
    for n in PERIODS if variance else ():
        if 2 * n <= len(y):
            residues = torch.stack([y[offset % n == r].mean() for r in range(n)])
            explained[n] = 1 - (y - residues[offset % n]).square().sum().item() / variance
    if not explained:  # a constant
        return 1, 1.0
    best = max(explained.values())
    least = next(n for n, part in explained.items() if part >= ENOUGH * best)
    return least, explained[least]


def _blocks(model: Model, head: int) -> tuple[Tensor, Tensor, Tensor]:
    """Give the blocks position | 1.1/position of 2.h, and of 3.1 position | 2.h/position and 2.h/position | position.

    Of a standard model they are products of its weights with the learned positions.
    """
    if isinstance(model, DisentangledTransformer):
        key = f"2.{head}/position"
        return (
            model.block(f"2.{head}", "position", "1.1/position"),
            model.block("3.1", "position", key),
            model.block("3.1", key, "position"),
        )
    if not isinstance(model, Transformer) or model.config.mlp_dim is not None:
        raise ValueError(
            f"phases are read of disentangled and of standard models without MLPs; got {type(model).__name__}"
        )
    first, second, _ = model.each_layer()
    E = model.position.detach()
    found, wrote = E @ first.V[0].detach(), E @ second.V[head - 1].detach()
    W2, W3 = score_matrix(model, f"2.{head}"), score_matrix(model, "3.1")
    return E @ W2 @ found.T, E @ W3 @ wrote.T, wrote @ W3 @ E.T
