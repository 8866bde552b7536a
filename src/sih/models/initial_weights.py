"""Draws the numbers that weights start with, always on the CPU: a seed gives the same ones on every device."""

import torch
from torch import nn


@torch.no_grad()
def draw_normal(weight: nn.Parameter, deviation: float, rng: torch.Generator) -> None:
    """Fill a weight with normal numbers of mean 0 and this standard deviation."""
    drawn = torch.empty(weight.shape, dtype=weight.dtype)
    weight.copy_(drawn.normal_(0, deviation, generator=rng))


@torch.no_grad()
def draw_uniform(weight: nn.Parameter, bound: float, rng: torch.Generator) -> None:
    """Fill a weight with uniform numbers from -bound to bound."""
    drawn = torch.empty(weight.shape, dtype=weight.dtype)
    weight.copy_(drawn.uniform_(-bound, bound, generator=rng))
