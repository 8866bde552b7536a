"""Random attention for tests."""

from __future__ import annotations

import torch
from torch import Tensor


def causal_attention(*shape: int, seed: int) -> Tensor:
    """Random causal attention; the last two sizes are query and key."""
    rng = torch.Generator().manual_seed(seed)
    scores = torch.randn(*shape, generator=rng, dtype=torch.float64)
    later = torch.ones(shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(later, -1e9), dim=-1)
