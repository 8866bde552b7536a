from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from sih.training.optimiser import OPTIMISERS, Adam


def test_schedules() -> None:
    assert [Adam(learning_rate=2.0).rate(n) for n in range(3)] == [2.0, 2.0, 2.0]
    falling = Adam(learning_rate=2.0, schedule="cosine", steps=4)
    assert [falling.rate(n) for n in range(5)] == pytest.approx(
        [2, 1 + math.sqrt(0.5), 1, 1 - math.sqrt(0.5), 0]
    )
    assert [Adam(learning_rate=2.0, warmup=4).rate(n) for n in range(5)] == [
        0.5,
        1.0,
        1.5,
        2.0,
        2.0,
    ]


def test_a_warmup_left_open_is_filled_in() -> None:
    assert [Adam(steps=steps, warmup=None).resolve().warmup for steps in (20, 2000)] == [20, 50]
    assert Adam(steps=20, warmup=3).resolve() == Adam(steps=20, warmup=3)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_an_optimiser_has_a_state_before_its_first_step(name: str) -> None:
    assert OPTIMISERS[name].name == name
    weight = nn.Parameter(torch.ones(3))
    made = OPTIMISERS[name]().make([weight])
    assert made.state[weight]
    before = {key: value.shape for key, value in made.state[weight].items()}
    weight.grad = torch.ones(3)
    made.step()
    assert {key: value.shape for key, value in made.state[weight].items()} == before
