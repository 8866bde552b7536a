"""The edges that carry a circuit, found by cutting every edge there is."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import sih
from sih.beyond.discovery.edges import Edge, by_writer, candidate_edges
from sih.models.disentangled.as_standard import to_standard

CIRCUITS: dict[str, dict[str, Any]] = {
    "mask": {"beta": 3.0},
    "position": {"beta": 3.0, "third": "position"},
    "sum": {"evidence": "sum", "beta": 1.0},
    "bayes": {"target": "bayes"},
    "looking": {"target": "looking"},
}


def small_task(lags: tuple[int, ...] = (1, 2, 3)) -> sih.Task:
    return sih.Task(sih.random_transition_matrix(3, rng=1), lags, length=8)


def noised(columns: slice, noise: Tensor, value: Tensor) -> Tensor:
    value = value.clone()
    value[..., columns] = noise[..., columns]
    return value


def matters(model: sih.DisentangledTransformer, edge: Edge, tokens: Tensor, output: Tensor) -> bool:
    """Whether the output changes when the reader gets random numbers for the source."""
    before = len(model.config.heads) if "stream" in edge.reader else int(edge.reader[0]) - 1
    stream = model.stream(before)
    noise = torch.rand(
        *tokens.shape, stream.dim, dtype=torch.float64, generator=torch.Generator().manual_seed(2)
    )
    run = model.run(tokens, replace={edge.reader: partial(noised, stream[edge.source], noise)})
    return bool((run.output - output).abs().max() > 1e-9)


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_edges_are_those_whose_cut_shows(name: str) -> None:
    task = small_task()
    model = sih.construct(task, **CIRCUITS[name])
    tokens = sih.sample(task, 4, rng=0).tokens
    output = model.run(tokens).output
    truth = {(edge.source, edge.reader): edge.role for edge in sih.circuit_edges(model)}
    assert truth.keys() <= {(edge.source, edge.reader) for edge in candidate_edges(model)}
    for edge in candidate_edges(model):
        assert matters(model, edge, tokens, output) == ((edge.source, edge.reader) in truth), edge
    trace = model.trace(tokens)
    for (source, _), role in truth.items():  # what carries data differs from sequence to sequence
        assert (role == "mask") == bool(
            torch.allclose(trace[source], trace[source][:1], rtol=1e-9, atol=0)
        ), source


def test_the_paper_s_circuit_by_name() -> None:
    edges = sih.circuit_edges(sih.construct(small_task(), third="position"))
    data = {(edge.source, edge.reader) for edge in edges if edge.role != "mask"}
    heads = ("2.1", "2.2", "2.3")
    assert data == {
        ("token", "1.1/query"),
        ("token", "1.1/key"),
        *(("1.1/position", f"{head}/value") for head in heads),
        *((f"{head}/1.1/position", "3.1/query") for head in heads),
        ("token", "3.1/value"),
        ("3.1/token", "3/stream"),
    }
    written = {(edge.source, edge.reader): edge.role for edge in by_writer(edges)}
    assert written["2.1/output", "3.1/query"] == "score"
    assert written["position", "2.1/key"] == "mask"


def test_edges_of_a_standard_model_and_of_none() -> None:
    model = sih.construct(small_task())
    standard = to_standard(model)
    found = {(edge.source, edge.reader) for edge in candidate_edges(standard)}
    assert {(edge.source, edge.reader) for edge in by_writer(sih.circuit_edges(model))} <= found
    assert len(found) == 3 * (2 + 3 * 3 + 6) + 7
    with pytest.raises(ValueError, match="has no circuit"):
        sih.circuit_edges(sih.Transformer(3, 8, 4, 2, (1, 1)))
