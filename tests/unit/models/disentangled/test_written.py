"""The path from blocks that are not zero: against the dense equations, on circuits and on any weights."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.circuits import blocks_of
from support.shapes import disentangled_models
from support.strategies import tasks
from torch import Tensor

import sih
from sih.circuits.paper import PaperCircuit, PaperOptions
from sih.models.disentangled import written
from sih.models.disentangled.written import WrittenBlocks

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


def compare(task: sih.Task, options: dict[str, Any], tokens: Tensor) -> None:
    """The model's own blocks, and blocks that never were a matrix."""
    model = sih.construct(task, **options)
    blocks = blocks_of(model.circuit, task)
    dense = model.trace(tokens, path="dense")
    # Scores of the Bayes circuit reach 1e7, and the order of their sums is the only thing that differs.
    near = 1e-5 if options.get("target") == "bayes" else 1e-9
    for found in (written.run(blocks, tokens), model.trace(tokens, path="written")):
        assert found.names == dense.names
        for one, other in zip(found.attention, dense.attention, strict=True):
            assert (one - other).abs().max() < near
        assert (found.output - model.predict(tokens)).abs().max() < near


@pytest.mark.parametrize("options", CASES, ids=str)
def test_a_circuit_is_its_dense_model(options: dict[str, Any], rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(4, rng=rng), lags=(1, 2, 3), length=24)
    compare(task, options, sih.sample(task, 2, rng=rng).tokens)


def test_two_lags_in_one_head(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(2, 5), length=30)
    compare(task, {"target": "two-lags"}, sih.sample(task, 1, rng=rng).tokens)


def test_sequences_may_be_shorter_than_the_model(rng: torch.Generator) -> None:
    task = sih.Task(sih.random_transition_matrix(3, rng=rng), lags=(1, 2), length=30)
    compare(task, {}, sih.sample(task, 1, rng=rng).tokens[:, :17])


@given(tasks(), st.integers(0, 2**20))
def test_a_circuit_for_any_lags_is_its_dense_model(task: sih.Task, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    compare(task, {"evidence": "sum"}, sih.sample(task, 1, rng=rng).tokens)


@given(case=disentangled_models(), keep=st.floats(0, 1), data=st.data())
def test_any_weights_are_the_dense_model(
    case: tuple[sih.DisentangledTransformer, Tensor], keep: float, data: st.DataObject
) -> None:
    """With some blocks set to zero, a head's only ones among them: then it looks at all of the past alike."""
    model, tokens = case
    rng = torch.Generator().manual_seed(data.draw(st.integers(0, 2**20)))
    kept = 0
    for layer, count in enumerate(model.config.heads):
        names = model.stream(layer).names
        for head in range(1, count + 1):
            for query in names:
                for key in names:
                    if torch.rand((), generator=rng) < keep:
                        kept += 1
                    else:
                        model.block(f"{layer + 1}.{head}", query, key).zero_()
    assert sum(map(len, model.written_blocks().A.values())) == kept
    with torch.no_grad():
        torch.testing.assert_close(
            model(tokens, path="written"), model(tokens, path="dense"), rtol=0, atol=1e-10
        )


def test_it_refuses_to_be_differentiated(rng: torch.Generator) -> None:
    model = sih.DisentangledTransformer(3, 6, (1, 1), rng=rng)
    tokens = torch.tensor([[0, 1, 2]])
    for call in (model, partial(model.trace, detach=False)):
        with pytest.raises(
            ValueError,
            match=r"path 'written' does not support gradients; call it inside torch\.no_grad\(\)",
        ):
            call(tokens, path="written")
    with torch.no_grad():
        loss = sih.next_token_loss(model, tokens, path="written")
        torch.testing.assert_close(loss, sih.next_token_loss(model, tokens))


def test_blocks_by_wrong_names_are_one_clear_error() -> None:
    blocks = WrittenBlocks(3, 4, (1, 2))
    assert blocks.block("2.2", "1.1/position", "token").shape == (4, 3)
    with pytest.raises(ValueError, match=r"there is no head '2\.3'"):
        blocks.block("2.3", "token", "token")
    with pytest.raises(ValueError, match=r"there is no block '2\.1/token'"):
        blocks.block("2.1", "2.1/token", "token")
    with pytest.raises(ValueError, match=r"there is no block '3\.1/token'"):
        blocks.readout_block("3.1/token")


def test_sixteen_heads_take_little_room() -> None:
    task = sih.Task(
        sih.random_transition_matrix(2, rng=torch.Generator().manual_seed(0)),
        tuple(range(1, 17)),
        256,
    )
    circuit = PaperCircuit.resolve(task, PaperOptions(), torch.float64)
    blocks = blocks_of(circuit, task)
    numbers = sum(block.numel() for head in blocks.A.values() for block in head.values())
    assert numbers < 35 * 256 * 256  # the dense third layer alone would have 77 million
