r"""How near one model's attention is to another's: numbers on attention matrices, the same for every model.

`attention[i, j]` is what query i pays to key j, a law over the keys $j \le i$; positions count from 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Measured = tuple[float, float]
"""A mean and its standard error."""


def total_variation(a: Float[Tensor, "*batch query key"], b: Float[Tensor, "*batch query key"]) -> Tensor:
    r"""$\frac12 \sum_j |a_{ij} - b_{ij}|$ for every query: 0 where the rows agree, 1 where they share no key."""
    return (a - b).abs().sum(dim=-1) / 2


def match_heads(
    found: Float[Tensor, "batch head query key"], wanted: Float[Tensor, "batch other query key"], first: int = 0
) -> list[int | None]:
    """For every head of `wanted` its own head of `found`, of least total variation all in all from query `first` on.

    None for the heads of `wanted` that are left over if `found` has fewer.
    """
    cost = torch.stack(
        [total_variation(found, head[:, None])[..., first:].mean(dim=(0, 2)) for head in wanted.unbind(dim=1)]
    )
    if len(cost) <= cost.shape[1]:
        return list(assign(cost))
    owner = {row: column for column, row in enumerate(assign(cost.T))}
    return [owner.get(row) for row in range(len(cost))]


def assign(cost: Float[Tensor, "row column"]) -> tuple[int, ...]:
    r"""A column of its own for every row, of least total cost; the first of equals.

    Exact, over sets of columns used so far: $O(2^n n^2)$ for n columns, and heads are few.

    >>> assign(torch.tensor([[1.0, 2.0, 9.0], [1.0, 5.0, 9.0]]))
    (1, 0)
    """
    rows, columns = cost.shape
    if rows > columns:
        raise ValueError(f"{rows} rows cannot have a column of {columns} each; transpose the costs")
    prices = cost.tolist()

    @cache
    def cheapest(row: int, used: int) -> tuple[float, tuple[int, ...]]:
        if row == rows:
            return 0.0, ()
        options = []
        for column in range(columns):
            if not used >> column & 1:
                price, rest = cheapest(row + 1, used | 1 << column)
                options.append((prices[row][column] + price, (column, *rest)))
        return min(options)

    return cheapest(0, 0)[1]


def score_correlation(
    scores: Float[Tensor, "batch query key"],
    log_p: Float[Tensor, "batch query key"],
    keys: Bool[Tensor, "query key"],
    *,
    apart_from_positions: bool = False,
) -> Float[Tensor, " batch"]:
    r"""Correlation, in every sequence, of $x_{ij} - \bar x_i$ with $y_{ij} - \bar y_i$ over the pairs in `keys`.

    Softmax does not see a constant per query, so each query's mean over its keys is taken off. With
    `apart_from_positions` so is what all sequences have in common at a pair of positions, $\bar x_{ij}$: what is left
    comes from the tokens alone, and a mask, however strong, is gone.
    """
    x, y = (_centred(values.double(), keys, apart_from_positions) for values in (scores, log_p))
    return (x * y).sum(dim=(1, 2)) / (x.square().sum(dim=(1, 2)) * y.square().sum(dim=(1, 2))).sqrt()


def explained(
    scores: Float[Tensor, "batch query key"], keys: Bool[Tensor, "query key"], by: Literal["offset", "positions"]
) -> Float[Tensor, " batch"]:
    r"""The part of the scores' variance within queries, in every sequence, that is known without the tokens.

    $1 - \sum (x_{ij} - \hat x_{ij})^2 / \sum x_{ij}^2$, a constant per query taken off x, over the pairs in `keys`;
    $\hat x$ is the mean of x over all sequences at the offset i - j (a head that is all diagonals has 1) or at the
    positions (i, j).
    """
    x = _centred(scores.double(), keys, apart_from_positions=False)
    expected = x.mean(dim=0)
    if by == "offset":
        for offset in range(len(keys)):
            diagonal, inside = expected.diagonal(-offset), keys.diagonal(-offset)
            diagonal[:] = diagonal.sum() / inside.sum().clamp_min(1) * inside
    return 1 - (x - expected).square().sum(dim=(1, 2)) / x.square().sum(dim=(1, 2))


def _centred(values: Tensor, keys: Bool[Tensor, "query key"], apart_from_positions: bool) -> Tensor:
    inside = torch.where(keys, values, 0.0)
    inside = inside - inside.sum(dim=-1, keepdim=True) / keys.sum(dim=-1).clamp_min(1)[:, None]
    if apart_from_positions:
        inside = inside - inside.mean(dim=0)
    return torch.where(keys, inside, 0.0)


def mass_at(attention: Float[Tensor, "batch query key"], offsets: Sequence[int]) -> Float[Tensor, "batch query offset"]:
    """What query i pays to key i - o, for every offset o; 0 where there is no such key."""
    out = attention.new_zeros(*attention.shape[:2], len(offsets))
    for index, offset in enumerate(offsets):
        diagonal = attention.diagonal(-offset, dim1=1, dim2=2)
        out[:, offset:, index] = diagonal
    return out


def pair_log_probabilities(
    tokens: Int[Tensor, "batch time"], P: Float[Tensor, "state state"]
) -> Float[Tensor, "batch query key"]:
    r"""$\log P_{s_j, s_i}$ for every query i and key j: what the construction's first layer scores a pair of tokens."""
    if not (P > 0).all():
        raise ValueError("a correlation with log P needs a P without zeros; their logarithm is -inf")
    return P.log()[tokens[:, None, :], tokens[:, :, None]]


def uniform_attention(time: int) -> Float[Tensor, "query key"]:
    """What a head pays that tells no key from another: the yardstick of a total variation."""
    past = torch.ones(time, time, dtype=torch.float64).tril()
    return past / past.sum(dim=-1, keepdim=True)


def measured(values: Float[Tensor, " batch"]) -> Measured:
    """Mean and standard error over sequences."""
    return values.mean().item(), (values.std() / math.sqrt(len(values))).item()
