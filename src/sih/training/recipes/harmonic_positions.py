"""An initialisation of the standard transformer in which positions, output and tokens have coordinates of their own.

The stream's coordinates go to three parts, `parts(dim, N)`, as the blocks of the disentangled transformer do:

    positions   F_i = sqrt(2) cos(2 pi m/n i), sqrt(2) sin(2 pi m/n i) for the fractions m/n <= 1/2 with n <= N
    output      a quarter of them; all that W_O reads
    tokens      E_s ~ N(0, 1) on the others
    layer 1     Q, K read tokens and V reads positions
    the rest    uniform, as ever

Where this says nothing weights are zero, and may be learned. The residue of a distance i - j modulo any n <= N is a
bilinear form of F_i and F_j: what a tiling of the past is made of. The first layer starts as the one kind of head that
can come to weigh the lags by P: one that compares tokens and reports where it found them; left to itself it becomes a
copy of the previous token instead. And what the last layer does not copy, the current token included, does not count
as output, so that the last layer has to select.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sih.checks import DTYPES
from sih.models.standard.transformer import Transformer


def harmonics(length: int, max_period: int) -> Float[Tensor, "time harmonic"]:
    """The positions' coordinates, with mean square 1 (n = 2 has the cosine alone, which is +-1)."""
    times = torch.arange(length, dtype=torch.float64)
    columns = []
    for n in range(2, max_period + 1):
        for m in (m for m in range(1, n // 2 + 1) if math.gcd(m, n) == 1):
            angle = 2 * math.pi * m / n * times
            columns += [angle.cos()] if n == 2 else [math.sqrt(2) * angle.cos(), math.sqrt(2) * angle.sin()]
    return torch.stack(columns, dim=1) if columns else torch.zeros(length, 0, dtype=torch.float64)


def parts(dim: int, max_period: int) -> tuple[slice, slice, slice]:
    """The coordinates of positions, output and tokens."""
    count, output = harmonics(1, max_period).shape[1], dim // 4
    if not 0 < count < dim - output:
        raise ValueError(
            f"max_period is at least 2 and leaves coordinates to the tokens; {max_period} takes {count} of dim={dim}"
        )
    return slice(count), slice(count, count + output), slice(count + output, dim)


@torch.no_grad()
def draw_harmonic(model: Transformer, max_period: int, rng: torch.Generator) -> None:
    """Initialise the model so. Rows of F and E have length sqrt(d), as if they were standard normal."""
    dim, fresh = model.config.dim, Transformer(**_shape(model), rng=rng)
    positions, output, tokens = parts(dim, max_period)
    F = harmonics(model.config.length, max_period)
    model.load_state_dict(fresh.state_dict())
    model.position.zero_()
    model.position[:, positions] = math.sqrt(dim / F.shape[1]) * F.to(model.position.dtype)
    model.token.zero_()
    model.token[:, tokens] = math.sqrt(dim / (dim - tokens.start)) * fresh.token[:, tokens]
    for weight, zero in forbidden(model, max_period):
        weight[..., zero, :] = 0
    model.readout.zero_()
    model.readout[:, output] = math.sqrt(dim / (output.stop - output.start)) * fresh.readout[:, output]


def forbidden(model: Transformer, max_period: int) -> list[tuple[Tensor, slice]]:
    """Layer 1's weights, each with the rows it starts without."""
    positions, _, _ = parts(model.config.dim, max_period)
    first = model.each_layer()[0]
    return [(first.Q, positions), (first.K, positions), (first.V, slice(positions.stop, None))]


def hold(model: Transformer, max_period: int) -> None:
    """No gradient for what does not move at first: tokens, readout and layer 1 keep to the parts they start with, and
    the layers between the first and the last stand still."""
    _, output, tokens = parts(model.config.dim, max_period)
    for weight, rows in forbidden(model, max_period):
        _grad(weight)[..., rows, :] = 0
    _grad(model.token)[:, : tokens.start] = 0
    _grad(model.readout)[:, : output.start] = 0
    _grad(model.readout)[:, output.stop :] = 0
    for layer in model.each_layer()[1:-1]:
        for weight in layer.parameters():
            weight.grad = None


def _grad(weight: Tensor) -> Tensor:
    assert weight.grad is not None
    return weight.grad


def _shape(model: Transformer) -> dict[str, Any]:
    return {**asdict(model.config), "dtype": DTYPES[model.config.dtype]}
