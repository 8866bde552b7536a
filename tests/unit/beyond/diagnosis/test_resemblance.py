from __future__ import annotations

from typing import Any

import pytest
import torch

import sih
from sih.attention.head_matching import uniform_attention
from sih.beyond.diagnosis.resemblance import known_circuits, resemblances


@pytest.mark.parametrize(
    "lags", [(1, 2, 3), (2, 5), pytest.param((1, 3, 4), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", known_circuits())
def test_every_circuit_is_its_own_nearest(
    name: str, lags: tuple[int, ...], rng: torch.Generator
) -> None:
    if name == "two-lags" and len(lags) != 2:
        pytest.skip("for two lags")
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=lags, length=40)
    tokens = sih.sample(task, 6, rng=rng).tokens
    found = resemblances(
        sih.construct(task, **known_circuits()[name]).trace(tokens).attention, tokens, task
    )
    assert found[0].circuit == name
    assert found[0].words == f"Its attention is that of the circuit '{name}'"
    assert max(found[0].layers) < 1e-6
    assert found[1].distance > 1e-3


def test_spare_heads_count_what_they_look_at(task: sih.Task, rng: torch.Generator) -> None:
    """Heads that a layer was padded with change nothing, heads with a pattern of their own do."""
    tokens = sih.sample(task, 4, rng=rng).tokens
    first, second, third = sih.construct(task).trace(tokens).attention
    flat, previous = (
        uniform_attention(32).expand(4, 1, 32, 32),
        torch.ones(4, 1, 32, 32).triu(-1).tril(-1),
    )
    padded = resemblances([torch.cat([first, flat], dim=1), second, third], tokens, task)[0]
    assert max(padded.layers) < 1e-6
    other = resemblances([torch.cat([first, previous], dim=1), second, third], tokens, task)[0]
    assert other.layers[0] > 0.8
    fewer = resemblances([first, second[:, :2], third], tokens, task)
    assert (
        fewer[0].layers[2] > 0.01
    )  # with two heads the circuit is another, which loses transitions


def test_words_name_the_layers(task: sih.Task, rng: torch.Generator) -> None:
    tokens = sih.sample(task, 4, rng=rng).tokens
    layers: list[Any] = list(sih.construct(task).trace(tokens).attention)
    flat = uniform_attention(32).expand(4, 3, 32, 32)
    assert resemblances([layers[0], flat, layers[2]], tokens, task)[0].words == (
        "Its attention resembles the circuit 'paper' in layers 1 and 3, not in layer 2"
    )
    nothing = resemblances([flat[:, :1], flat, flat[:, :1]], tokens, task)[0]
    assert "no known circuit" in nothing.words
    assert nothing.distance == pytest.approx(1)
    assert resemblances(layers[:2], tokens, task) == []
