from __future__ import annotations

import math

import pytest
import torch
from support.small_configs import small

import sih
from sih.training.trainer import Trainer


def deviation_over(weight: torch.Tensor, expected: float) -> float:
    """How many of its own standard errors the root mean square is from the expected standard deviation."""
    found = weight.double().square().mean().sqrt().item() / expected
    return (found - 1) * math.sqrt(2 * weight.numel())


@pytest.mark.parametrize("heads", [(1, 1, 1), (3, 3)])
def test_every_weight_has_the_standard_deviation_that_is_said(heads: tuple[int, ...]) -> None:
    """Five standard errors: of the 25 weights, one errs with probability 2e-5 in all."""
    config = sih.TrainConfig(heads=heads, length=64, mlp_dim=48, init="gpt2")
    for name, weight in Trainer(config).model.named_parameters():
        written = name.endswith((".V", ".W2"))
        expected = 0.02 / math.sqrt(2 * len(heads)) if written else 0.02
        assert abs(deviation_over(weight, expected)) < 5, name
        assert abs(weight.mean().item()) < 5 * expected / math.sqrt(weight.numel()), name


def test_same_seed_same_weights_and_all_move_from_the_first_step() -> None:
    one, same, other = (Trainer(small(init="gpt2", seed=seed)) for seed in (3, 3, 4))
    begin = one.state()
    for name in dict(one.model.named_parameters()):
        assert torch.equal(begin[f"model/{name}"], same.state()[f"model/{name}"])
        assert not torch.equal(begin[f"model/{name}"], other.state()[f"model/{name}"])
    one.advance()
    for name in dict(one.model.named_parameters()):
        assert not torch.equal(begin[f"model/{name}"], one.state()[f"model/{name}"])
