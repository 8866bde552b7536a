from __future__ import annotations

import math

import pytest
import torch
from support.small_configs import small
from torch import nn

import sih
from sih.training.config import TrainConfig
from sih.training.recipes.factors import FactorParametrisation
from sih.training.trainer import Trainer

CONFIG = small(model="disentangled", init="factors", heads=(2, 1), qk_dim=4)


def started(config: TrainConfig) -> tuple[Trainer, FactorParametrisation]:
    trainer = Trainer(config)
    assert isinstance(trainer.start, FactorParametrisation)
    return trainer, trainer.start


def test_the_matrices_are_products_of_factors_of_the_width_of_queries_from_first_to_last() -> None:
    trainer, start = started(CONFIG)
    assert start.parameters.keys() == {"readout", "1/Q", "1/K", "2/Q", "2/K"}
    assert start.parameters["1/Q"].shape == (2, 15, 4)
    assert start.parameters["2/K"].shape == (1, 45, 4)
    begin = trainer.state()
    for _ in range(3):
        for layer, A in enumerate(start.model.A, 1):
            Q, K = start.parameters[f"{layer}/Q"], start.parameters[f"{layer}/K"]
            expected = torch.einsum("hiw,hjw->hij", Q, K)
            torch.testing.assert_close(A.data, expected.detach(), rtol=1e-5, atol=1e-7)
            assert torch.linalg.matrix_rank(A.detach()).max() <= 4
        trainer.advance()
    now = trainer.state()
    for name in ("table/1/Q", "table/1/K", "table/2/Q", "table/2/K", "model/readout"):
        assert not torch.equal(begin[name], now[name])


def test_scales_are_those_that_are_said() -> None:
    """Five standard errors of each factor: of six, errs with probability 4e-6."""
    config = TrainConfig(model="disentangled", init="factors", heads=(1, 1, 1), length=64)
    _, start = started(config)
    for layer, (dim, said) in enumerate(((69, 0.082), (138, 0.041), (276, 0.020)), 1):
        for factor in (start.parameters[f"{layer}/Q"], start.parameters[f"{layer}/K"]):
            ratio = factor.detach().double().square().mean().sqrt().item() * math.sqrt(dim)
            assert abs(ratio - 1) < 5 / math.sqrt(2 * factor.numel())
        assert start.model.A[layer - 1].std().item() == pytest.approx(math.sqrt(32) / dim, rel=0.1)
        assert math.sqrt(32) / dim == pytest.approx(said, abs=5e-4)
    bound = 1 / math.sqrt(start.model.readout.shape[-1])
    assert 0.99 * bound < start.model.readout.abs().max().item() <= bound


def test_gradients_are_those_of_the_loss_in_the_factors() -> None:
    """torch's own, through A = Q K^T and the equations as they stand."""
    trainer, start = started(CONFIG)
    tokens = sih.sample(trainer.task, 6, rng=0).tokens
    sih.next_token_loss(start.model, tokens).backward()
    start.collect_gradients(0)
    moves = {
        name: weight.detach().clone().requires_grad_() for name, weight in start.parameters.items()
    }
    weights = {f"A.{n - 1}": moves[f"{n}/Q"] @ moves[f"{n}/K"].mT for n in (1, 2)} | {
        "readout": moves["readout"]
    }
    output = torch.func.functional_call(start.model, weights, (tokens,), {"path": "dense"})
    nn.functional.cross_entropy(output[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()).backward()
    for name, weight in moves.items():
        found = start.parameters[name].grad
        assert found is not None
        assert weight.grad is not None
        assert weight.grad.abs().max() > 1e-5
        torch.testing.assert_close(found, weight.grad, rtol=1e-4, atol=1e-7)
