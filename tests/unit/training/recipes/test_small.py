from __future__ import annotations

import math

import torch
from support.small_configs import small

import sih
from sih.training.trainer import Trainer


def test_every_weight_has_a_standard_deviation_of_one_in_ten_thousand() -> None:
    """Five standard errors of each of four weights: errs with probability 3e-6."""
    config = sih.TrainConfig(model="disentangled", init="small", heads=(1, 1, 1), length=16)
    trainer = Trainer(config)
    for name, weight in trainer.model.named_parameters():
        found = weight.double().square().mean().sqrt().item() / 1e-4
        assert abs(found - 1) < 5 / math.sqrt(2 * weight.numel()), name


def test_heads_start_all_but_uniform_and_all_weights_move() -> None:
    trainer = Trainer(small(model="disentangled", init="small", heads=(1, 1)))
    tokens = torch.tensor([[0, 1, 2, 1, 0, 2]])
    uniform = torch.ones(6, 6).tril() / torch.arange(1, 7)[:, None]
    for attention in trainer.model.trace(tokens).attention:
        assert (attention - uniform).abs().max() < 1e-3
    begin = trainer.state()
    trainer.advance()
    for name in dict(trainer.model.named_parameters()):
        assert not torch.equal(begin[f"model/{name}"], trainer.state()[f"model/{name}"])
