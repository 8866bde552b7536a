r"""The periodic attention of layer 2 and its use by layer 3, from the weights.

To first order, row i of head 2.h scores key m with
$\sum_k a^{(1)}_{m,m-k}\, G_h(i-m+k)$: layer 1's attention pattern, against the query's
position. Layer 3 reads a key's row against the query's position, $R'_h(i-m)$, and the
query's row against the key's, $R_h(m-j)$. So a transition at offset o whose found lag
is k moves the score of lag $k_0$ by

$$ \text{key's row: } \sum_h R'_h(o)\, G_h(o+1+k-k_0), \qquad \text{query's row: } \sum_h R_h(k_0-1-o)\, G_h(o+k). $$

They vote for the lag found where this matrix over (k, k0), less its row and column
means, is a positive multiple of the identity less its mean. All are means along
diagonals, divided by the temperature, of models with one head in layers 1 and 3.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.attention.interventions import values_until
from sih.beyond.evidence_paths.stream_pieces import score_matrix
from sih.models.base import Model
from sih.models.sites import layer_of
from sih.task import Task

NEAR = 8
"""Offsets up to this one have separate weights; periods are fitted beyond."""
PERIODS = range(2, 13)
ENOUGH = 0.9
"""Share of the best explained variance that suffices for a period; the least such
period is chosen."""


@dataclass(frozen=True, eq=False)
class Phases:
    """The profiles of each second-layer head by offset, and their votes."""

    looks: dict[str, Float[Tensor, " offset"]]
    """G_h(o) for o = 0, 1, ..."""
    reads_key: dict[str, Float[Tensor, " offset"]]
    """R'_h(o) for o = 0, 1, ..."""
    reads_query: dict[str, Float[Tensor, " offset"]]
    """R_h(-o) for o = 0, 1, ..."""
    period: dict[str, int]
    """The period of G_h beyond `NEAR`."""
    explained: dict[str, float]
    """Share of its variance beyond `NEAR` that residues modulo the period explain."""
    votes: dict[str, float]
    """For "key" and "query": the multiple of the identity, averaged over offsets beyond
    `NEAR`."""
    cosine: dict[str, float]
    """Similarity of the matrix to a multiple of the identity: 1 if it is one, -1 with
    the opposite sign."""


def has_phases(model: Model, task: Task) -> bool:
    """Return whether phases can be read: positions, heads (1, H, 1), no MLPs, and
    offsets beyond `NEAR`.
    """
    heads = model.config.heads
    three = len(heads) == 3 and heads[0] == heads[2] == 1
    return three and _has_positions(model) and task.length >= NEAR + max(task.max_lag + 3, 5)


def read_phases(model: Model, task: Task) -> Phases:
    """Return the profiles of a model with heads (1, H, 1) and without MLPs."""
    heads = model.config.heads
    if len(heads) != 3 or heads[0] != 1 or heads[2] != 1:
        raise ValueError(f"phases are read of models with heads (1, H, 1); got {heads}")
    looks, by_key, by_query = {}, {}, {}
    for name, blocks in _blocks(model, task).items():
        G, key, query = (block.double() / model.config.temperature for block in blocks)
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
    """Return averages along the diagonals of the lower triangle: entry o is the mean
    over i of block[i, i - o].
    """
    return torch.stack([block.diagonal(-offset).mean() for offset in range(len(block))])


def period(profile: Float[Tensor, " offset"]) -> tuple[int, float]:
    """Return the least period that explains nearly as much of the profile beyond `NEAR`
    as any, and its share.

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


def _has_positions(model: Model) -> bool:
    """Return whether positions are read from the stream alone, and there are no MLPs."""
    mlps = [name for name in model.hook_points() if name.endswith("/mlp")]
    return model.scores_from_stream and "position" in model.writers(0) and not mlps


def _blocks(model: Model, task: Task) -> dict[str, tuple[Tensor, Tensor, Tensor]]:
    """Return the blocks position | 1.1/position of each 2.h, and of 3.1 position |
    2.h/position and the converse.

    In a stream that is a sum they are products of weights with the learned positions.
    """
    if not _has_positions(model):
        raise ValueError(
            "phases are read of models with positions in the stream and without MLPs; "
            f"got {type(model).__name__}"
        )
    tokens = torch.zeros(1, model.config.length or task.length, dtype=torch.int64)
    trace = model.trace(tokens)
    one = torch.eye(tokens.shape[1] + model.first)

    def placed(name: str, value: Tensor, layers: int) -> Tensor:
        """Return the stream after some layers, if it contains nothing but this value."""
        stream = torch.zeros_like(trace[f"{layers}/stream"])
        stream[..., model.columns(name, layers)] = value
        return stream

    def wrote(head: str) -> Tensor:
        """Return the stream after the head's layer, if it contains the head's copy of
        positions alone.
        """
        layer = layer_of(head)
        name = f"{head}/output"
        read = placed("position", trace["position"], layer - 1)
        alone = {f"{head}/value": read, f"{head}/attention": one}
        return placed(name, values_until(model, tokens, alone, [name])[name], layer)[0]

    early, late = (placed("position", trace["position"], layers)[0] for layers in (1, 2))
    found, W3 = wrote("1.1"), score_matrix(model, "3.1")
    blocks = {}
    for head in range(1, model.config.heads[1] + 1):
        name = f"2.{head}"
        W2, held = score_matrix(model, name), wrote(name)
        blocks[name] = (early @ W2 @ found.T, late @ W3 @ held.T, held @ W3 @ late.T)
    return blocks
