from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import tasks

import sih
from sih.construction import PaperCircuit, write
from sih.models.disentangled import written as lean

CASES: list[dict[str, Any]] = [
    {},
    {"third": "position"},
    {"heads": 1},
    {"evidence": "sum"},
    {"sink": True},
    {"temper": 0.5, "beta": 3.0},
    {"target": "bayes"},
    {"target": "bayes", "symmetric": True},
]


def compare(task: sih.Task, options: dict[str, Any], tokens: torch.Tensor) -> None:
    model = sih.construct(task, **options)
    found = lean.run(write(lean.WrittenBlocks(task.num_states, task.length), task, model.circuit), tokens[0])
    trace = model.trace(tokens, path="dense")
    # Scores of the Bayes circuit reach 1e7, and the order of their sums is the only thing that differs.
    near = 1e-5 if options.get("target") == "bayes" else 1e-9
    assert list(found.attention) == [name[:-10] for name in trace.names if name.endswith("/attention")]
    for head, attention in found.attention.items():
        assert (attention - trace[f"{head}/attention"][0]).abs().max() < near, head
    assert (found.law - model.predict(tokens)[0]).abs().max() < near
    assert torch.equal(found.log_attention.exp(), found.attention["3.1"])


@pytest.mark.parametrize("options", CASES, ids=str)
def test_equals_the_dense_model_from_the_first_exact_position_on(options: dict[str, Any], rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=(1, 2, 3), length=24)
    compare(task, options, sih.sample(task, 1, rng=rng).tokens)


def test_two_lags_in_one_head(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(2, 5), length=30)
    compare(task, {"target": "two-lags"}, sih.sample(task, 1, rng=rng).tokens)


def test_sequences_may_be_shorter_than_the_model(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=30)
    compare(task, {}, sih.sample(task, 1, rng=rng).tokens[:, :17])


@given(tasks(), st.integers(0, 2**20))
def test_equals_the_dense_model_for_any_lags(task: sih.Task, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    compare(task, {"evidence": "sum"}, sih.sample(task, 1, rng=rng).tokens)


def test_sixteen_heads_take_little_room() -> None:
    task = sih.Task(sih.random_transition_matrix(2, rng=torch.Generator().manual_seed(0)), tuple(range(1, 17)), 256)
    blocks = write(lean.WrittenBlocks(2, 256), task, PaperCircuit().resolve(task, torch.float64))
    numbers = sum(block.numel() for head in blocks.heads.values() for block in head.values())
    assert numbers < 35 * 256 * 256  # the dense third layer alone would have 77 million
