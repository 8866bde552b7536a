r"""Finds which head of one model plays the part of which head of another, by total variation.

`attention[i, j]` is what query i pays to key j, a distribution over the keys $j \le i$; positions count from 0.
"""

from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor


def total_variation(
    a: Float[Tensor, "*#batch query key"], b: Float[Tensor, "*#batch query key"]
) -> Tensor:
    r"""Give $\frac12 \sum_j |a_{ij} - b_{ij}|$ for every query: 0 where the rows agree, 1 where they share no key."""
    return (a - b).abs().sum(dim=-1) / 2


def uniform_attention(time: int) -> Float[Tensor, "query key"]:
    """Give what a head pays that tells no key from another: the yardstick of a total variation."""
    past = torch.ones(time, time, dtype=torch.float64).tril()
    return past / past.sum(dim=-1, keepdim=True)


def match_heads(
    found: Float[Tensor, "batch head query key"],
    wanted: Float[Tensor, "batch other query key"],
    first: int = 0,
) -> list[int | None]:
    """Give every head of `wanted` a head of `found` of its own, None to those left over if `found` has fewer.

    The total variation of all pairs together, from query `first` on, is the least that an assignment can have.
    """
    distances = (
        total_variation(found, head[:, None])[..., first:] for head in wanted.unbind(dim=1)
    )
    cost = torch.stack([each.mean(dim=(0, 2)) for each in distances])
    if len(cost) <= cost.shape[1]:
        return list(assign(cost))
    owner = {row: column for column, row in enumerate(assign(cost.T))}
    return [owner.get(row) for row in range(len(cost))]


def assign(cost: Float[Tensor, "row column"]) -> tuple[int, ...]:
    r"""Choose a column of its own for every row, of least total cost, and the first among equals.

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
