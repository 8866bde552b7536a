r"""Finds which head of one model plays the part of which head of another, by total variation.

`attention[i, j]` is what query i pays to key j, a distribution over the keys $j \le i$; positions count from 0.
"""

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
    from scipy.optimize import linear_sum_assignment  # takes a while to load

    distances = (
        total_variation(found, head[:, None])[..., first:] for head in wanted.unbind(dim=1)
    )
    cost = torch.stack([each.mean(dim=(0, 2)) for each in distances])
    rows, columns = linear_sum_assignment(cost.numpy())
    partner = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    return [partner.get(head) for head in range(len(cost))]
