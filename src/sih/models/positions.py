"""Initial position embeddings that turn, a pair of coordinates for each period."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor


def harmonic_positions(length: int, dim: int, max_period: int, rng: torch.Generator) -> Float[Tensor, "time dim"]:
    r"""$F_i$ has coordinates $\sqrt2\cos(2\pi\tfrac mn i)$, $\sqrt2\sin(2\pi\tfrac mn i)$, in a random rotation.

    m/n runs over the fractions in lowest terms up to 1/2 with n <= max_period (for 1/2 the cosine alone, $(-1)^i$). The
    residue of a distance i - j modulo n is then a bilinear form of F_i and F_j for every n up to there: what the second
    layer's tiling is made of. Every row has the length of a standard normal one, $\sqrt d$.
    """
    times = torch.arange(length, dtype=torch.float64)
    columns = []
    for n in range(2, max_period + 1):
        for m in (m for m in range(1, n // 2 + 1) if math.gcd(m, n) == 1):
            angle = 2 * math.pi * m / n * times
            columns += [angle.cos()] if n == 2 else [math.sqrt(2) * angle.cos(), math.sqrt(2) * angle.sin()]
    if not columns or len(columns) > dim:
        raise ValueError(
            f"max_period is at least 2, and small enough that its harmonics fit in dim={dim}; "
            f"got {max_period}, which has {len(columns)}"
        )
    rotation = torch.linalg.qr(torch.randn(dim, dim, dtype=torch.float64, generator=rng)).Q
    return (torch.stack(columns, dim=1) @ rotation[: len(columns)] * math.sqrt(dim / len(columns))).float()
