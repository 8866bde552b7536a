from __future__ import annotations

import math

import pytest
import torch

from sih.models.standard.layer import Layer


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_mlp_against_loops(activation: str, rng: torch.Generator) -> None:
    layer = Layer(heads=1, dim=3, qk_dim=2, mlp_dim=4, dtype=torch.float64)
    assert layer.W1 is not None
    assert layer.W2 is not None
    with torch.no_grad():
        for weight in (layer.W1, layer.W2):
            weight.copy_(torch.randn(3, 4, generator=rng, dtype=torch.float64))
    h = torch.randn(1, 1, 3, generator=rng, dtype=torch.float64)

    def bent(x: float) -> float:
        return max(x, 0.0) if activation == "relu" else x * (1 + math.erf(x / math.sqrt(2))) / 2

    inner = [
        bent(sum(h[0, 0, d].item() * layer.W1[d, n].item() for d in range(3))) for n in range(4)
    ]
    wanted = [sum(inner[n] * layer.W2[d, n].item() for n in range(4)) for d in range(3)]
    assert layer.mlp(h, activation)[0, 0].tolist() == pytest.approx(wanted)


def test_without_an_mlp_there_are_no_weights_of_one() -> None:
    layer = Layer(heads=2, dim=6, qk_dim=3, mlp_dim=None, dtype=torch.float32)
    assert {name: tuple(weight.shape) for name, weight in layer.named_parameters()} == {
        "Q": (2, 6, 3),
        "K": (2, 6, 3),
        "V": (2, 6, 6),
    }
