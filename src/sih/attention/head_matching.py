r"""Matching of the heads of two models by total variation.

`attention[i, j]` is the attention of query i to key j, a distribution over the keys
$j \le i$. Positions count from 0.
"""

import torch
from jaxtyping import Float
from torch import Tensor


def total_variation(
    a: Float[Tensor, "*#batch query key"], b: Float[Tensor, "*#batch query key"]
) -> Tensor:
    r"""Return $\frac12 \sum_j |a_{ij} - b_{ij}|$ for every query.

    It is 0 where the rows agree, and 1 where they share no key.
    """
    return (a - b).abs().sum(dim=-1) / 2


def uniform_attention(time: int) -> Float[Tensor, "query key"]:
    """Return uniform causal attention, the reference value of a total variation."""
    past = torch.ones(time, time, dtype=torch.float64).tril()
    return past / past.sum(dim=-1, keepdim=True)


def match_heads(
    found: Float[Tensor, "batch head query key"],
    wanted: Float[Tensor, "batch other query key"],
    first: int = 0,
) -> list[int | None]:
    """Return a different head of `found` for every head of `wanted`.

    It is None for those left over. The assignment has the least total variation of all
    pairs together, from query `first` on.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    distances = (
        total_variation(found, head[:, None])[..., first:] for head in wanted.unbind(dim=1)
    )
    cost = torch.stack([each.mean(dim=(0, 2)) for each in distances])
    rows, columns = linear_sum_assignment(cost.numpy())
    partner = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    return [partner.get(head) for head in range(len(cost))]
