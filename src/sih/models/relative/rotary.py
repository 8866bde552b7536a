r"""Rotation of queries and keys by their positions (Su et al. 2021).

With it a score depends on the offset alone. Coordinates n and n + d/2 of a vector at
position i are turned by the angle $i \cdot 10000^{-2n/d}$.
"""

import torch
from jaxtyping import Float
from torch import Tensor

BASE = 10_000.0


def rotate(x: Float[Tensor, "*batch time dim"]) -> Float[Tensor, "*batch time dim"]:
    """Return the vectors, turned by the angles of their positions. The dimension is
    even.

    >>> rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]])).round(decimals=2)  # by 0 and by 1 radian
    tensor([[1.0000, 0.0000],
            [0.5400, 0.8400]])
    """
    time, dim = x.shape[-2:]
    rates = BASE ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(time, dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
