"""A kind whose scores depend on the offset: what reads models is right about it or refuses it, and wrong nowhere.

Each check is run on the standard kind too, which all of them are right about.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import pytest
import torch
from torch import Tensor

import sih
from sih.beyond.discovery.discovery import METHODS
from sih.beyond.evidence_paths.key_votes import averages, path_votes
from sih.models.relative.rotary import rotate
from sih.models.sites import Site

LENGTH = 16
ResultT = TypeVar("ResultT")


class Rotary(sih.Transformer):
    """Turns queries and keys by their positions, and has no embeddings of positions."""

    paths = ("plain",)  # type: ignore[assignment]

    def equations(self, tokens: Tensor, site: Site) -> Tensor:
        h = site("0/stream", site("token", self.token[tokens]))
        later = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).triu(1)
        for number, layer in enumerate(self.each_layer(), 1):
            outputs = []
            for head, (Q, K, V) in enumerate(zip(layer.Q, layer.K, layer.V, strict=True), 1):
                name = f"{number}.{head}"
                query, key, value = (site(f"{name}/{use}", h) for use in ("query", "key", "value"))
                scores = (rotate(query @ Q) @ rotate(key @ K).mT).masked_fill(later, -torch.inf)
                scores = site(f"{name}/scores", scores)
                attention = site(
                    f"{name}/attention", torch.softmax(scores / self.config.temperature, dim=-1)
                )
                outputs.append(site(f"{name}/output", attention @ (value @ V)))
            h = site(f"{number}/stream", h + sum(outputs))
        return site("output", h @ self.readout.T)


class Normed(sih.Transformer):
    """Reads what it wrote through a norm, so that no edge is a term of what is read."""

    paths = ("plain",)  # type: ignore[assignment]

    def equations(self, tokens: Tensor, site: Site) -> Tensor:
        h = site(
            "0/stream",
            site("token", self.token[tokens]) + site("position", self.position[: tokens.shape[1]]),
        )
        for number, layer in enumerate(self.each_layer(), 1):
            read = h / h.norm(dim=-1, keepdim=True)
            query, key, value = (
                site(f"{number}.1/{use}", read) for use in ("query", "key", "value")
            )
            scores = (query @ layer.Q[0]) @ (key @ layer.K[0]).mT
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = site(f"{number}.1/scores", scores.masked_fill(later, -torch.inf))
            attention = site(f"{number}.1/attention", torch.softmax(scores, dim=-1))
            h = h + site(f"{number}.1/output", attention @ value @ layer.V[0])
            h = site(f"{number}/stream", h)
        return site("output", h @ self.readout.T)


@pytest.fixture
def task() -> sih.Task:
    return sih.Task(sih.random_transition_matrix(3, rng=0), lags=(1, 2, 3), length=LENGTH)


@pytest.fixture
def batch(task: sih.Task) -> sih.Batch:
    return sih.sample(task, 32, rng=0)


def made(kind: type[sih.Transformer]) -> sih.Transformer:
    return kind(3, LENGTH, dim=12, qk_dim=6, heads=(1, 2, 1), dtype=torch.float64, init="normal")


def unless_refused(compute: Callable[[], ResultT]) -> ResultT | None:
    """Return the result, or None where it is refused in one line that names the kind or what is needed of it."""
    try:
        return compute()
    except ValueError as refusal:
        said = str(refusal)
    assert "\n" not in said
    assert any(word in said for word in ("needs", "reads", "depend"))
    return None


def scores_of_lags(model: sih.Transformer, tokens: Tensor, task: sih.Task) -> Tensor:
    """Return the last layer's attention scores of the lags, less their mean, from max_lag on."""
    with torch.no_grad():
        scores = model.trace(tokens)["3.1/scores"] / model.config.temperature
    found = torch.stack(
        [scores.diagonal(1 - lag, -2, -1)[:, task.max_lag - lag + 1 :] for lag in task.lags], dim=-1
    )
    return found - found.mean(dim=-1, keepdim=True)


def test_it_is_a_model_like_others(batch: sih.Batch) -> None:
    """Its predictions depend on distances: without a rotation the first layer could not tell orders apart."""
    model = made(Rotary)
    law = model.predict(batch.tokens)
    torch.testing.assert_close(law.sum(dim=-1), torch.ones_like(law[..., 0]))
    one, other = torch.tensor([[0, 1, 2, 0]]), torch.tensor([[1, 0, 2, 0]])
    assert not torch.allclose(model.predict(one)[:, -1], model.predict(other)[:, -1])


@pytest.mark.parametrize("kind", [sih.Transformer, Rotary])
def test_evidence_flow(kind: type[sih.Transformer], task: sih.Task, batch: sih.Batch) -> None:
    """The spread that it shares out is that of the scores themselves."""
    model = made(kind)
    flow = unless_refused(lambda: sih.evidence_flow(model, task, batch))
    if flow is not None:
        scores = scores_of_lags(model, batch.tokens, task)[:, :-1] * model.config.temperature
        assert flow.spread == pytest.approx(
            (scores - scores.mean(dim=0)).square().mean().sqrt().item()
        )
        assert sum(flow.shares.values()) == pytest.approx(1)


@pytest.mark.parametrize("kind", [sih.Transformer, Rotary])
def test_path_votes(kind: type[sih.Transformer], task: sih.Task, batch: sih.Batch) -> None:
    """The scores that it splits are those of the model."""
    model, tokens = made(kind), batch.tokens[0]
    found = unless_refused(lambda: path_votes(model, task, tokens, averages(model, batch)))
    if found is not None:
        torch.testing.assert_close(
            found.score[task.max_lag :], scores_of_lags(model, tokens[None], task)[0]
        )


@pytest.mark.parametrize("kind", [sih.Transformer, Rotary])
@pytest.mark.parametrize("method", METHODS)
def test_edge_scores(kind: type[sih.Transformer], task: sih.Task, method: str) -> None:
    """The score of an edge is what is lost where it alone carries the other sequence's data."""
    model = made(kind)
    pairs = sih.counterfactual_pairs(task, size=1)
    found = unless_refused(lambda: sih.edge_scores(model, pairs, method))
    if found is None:
        return
    embeddings = {"token"} if kind is Rotary else {"token", "position"}
    assert {edge.source for edge in found} == {
        *embeddings,
        "1.1/output",
        "2.1/output",
        "2.2/output",
        "3.1/output",
    }
    if method != "exact":
        return
    with torch.no_grad():
        clean, corrupt = model.trace(pairs.clean.tokens), model.trace(pairs.corrupt.tokens)
        for edge, score in found.items():
            read = clean[edge.reader] + corrupt[edge.source] - clean[edge.source]
            patched = model.run(pairs.clean.tokens, replace={edge.reader: read}).output
            lost = pairs.metric(model.law(clean.output)) - pairs.metric(model.law(patched))
            assert score == pytest.approx(lost.item(), abs=1e-12)


def test_a_stream_that_is_not_read_as_it_is_is_refused(task: sih.Task, batch: sih.Batch) -> None:
    """Reading `Normed` as a sum would be wrong, and each of the readers sees that it misses what is there."""
    model = Normed(3, LENGTH, dim=12, qk_dim=6, heads=(1, 1, 1), dtype=torch.float64, init="normal")
    pairs = sih.counterfactual_pairs(task, size=1)
    calls: dict[str, Callable[[], object]] = {
        "evidence_flow": lambda: sih.evidence_flow(model, task, batch),
        "path_votes": lambda: path_votes(model, task, batch.tokens[0], averages(model, batch)),
        **{
            f"edge_scores{method}": partial(sih.edge_scores, model, pairs, method)
            for method in METHODS
        },
    }
    for name, call in calls.items():
        with pytest.raises(
            ValueError, match="needs a stream that is the sum of what heads write"
        ) as refusal:
            call()
        assert name.startswith(str(refusal.value).partition(" needs")[0].rpartition(" ")[2])
        assert "\n" not in str(refusal.value)
