"""A circuit with relative positions is read as others are: what reads models is right about it, or refuses it."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import pytest
import torch

import sih
from sih.attention.head_matching import match_heads
from sih.beyond.diagnosis.resemblance import resemblances
from sih.beyond.discovery.decoys import with_decoys
from sih.beyond.discovery.edges import candidate_edges
from sih.beyond.evidence_paths.channel_shares import read_channels
from sih.beyond.evidence_paths.key_votes import averages, path_votes
from sih.beyond.evidence_paths.phases import has_phases, read_phases

TASK = sih.Task(
    sih.random_transition_matrix(4, rng=0, concentration=0.5), lags=(1, 2, 3), length=24
)
BATCH = sih.sample(TASK, 16, rng=0)
WORDS: dict[str, dict[str, Any]] = {
    "paper": {"beta": 3.0},
    "bayes": {"target": "bayes"},
    "standard": {"beta": 3.0, "form": "standard"},
}


def made(name: str) -> Any:
    return sih.construct(TASK, kind="relative", **WORDS[name])


@pytest.mark.parametrize("name", WORDS)
def test_evidence_is_carried(name: str) -> None:
    """By offset, as it was built: what layer 1 found of the lags is summed, and read against offsets."""
    model = made(name)
    flow = sih.evidence_flow(model, TASK, BATCH)
    assert flow.channels["carried"] == pytest.approx(1)
    parts: dict[str, dict[Any, float]] = {
        "paper": {("2.1/1.1/offset", "offset"): 1.0},
        "bayes": {("2.1/1.1/offset", "offset"): 0.5, ("2.1/1.2/offset", "offset"): 0.5},
        "standard": {"2.1:values": 1.0},
    }
    for part, share in flow.shares.items():
        assert share == pytest.approx(parts[name].get(part, 0.0), abs=1e-3), part
    paths = sih.evidence_flow(model, TASK, BATCH, by="paths")
    assert paths.shares["2.1:values"] == pytest.approx(1)


@pytest.mark.parametrize("name", WORDS)
def test_votes_are_those_of_the_transitions(name: str) -> None:
    """What the one head carried is all of the score, and each key's vote is what that transition says."""
    model, tokens = made(name), BATCH.tokens[0]
    found = path_votes(model, TASK, tokens, averages(model, BATCH))
    whole = sum(found.parts.values()) + found.common
    torch.testing.assert_close(whole, found.score, rtol=0, atol=1e-6)
    for part, value in found.parts.items():
        assert (part == "2.1:values") == bool(value.abs().max() > 1e-6), part
    i, P, row = 20, TASK.P, tokens.tolist()
    votes = found.votes["2.1:values"][i]  # by key, the start token first
    for n in range(TASK.max_lag, i + 1):
        chances = [float(P[row[n - k], row[n]]) for k in TASK.lags]
        if name == "bayes":
            wanted = torch.tensor(chances).double().log()
        else:
            wanted = 3.0 * torch.tensor(chances).double() / sum(chances) / (i + 1 - TASK.max_lag)
        mean = torch.zeros(3).double()
        for other in BATCH.tokens.tolist():
            each = torch.tensor([float(P[other[n - k], other[n]]) for k in TASK.lags]).double()
            mean += (
                each.log() if name == "bayes" else 3.0 * each / each.sum() / (i + 1 - TASK.max_lag)
            ) / len(BATCH.tokens)
        wanted = wanted - mean
        near = 1e-4 if name == "bayes" else 1e-7
        assert (votes[n + 1] - (wanted - wanted.mean())).abs().max() < near


@pytest.mark.parametrize("name", WORDS)
def test_channels(name: str) -> None:
    reference = sih.sample(TASK, 16, rng=5)
    found = read_channels(made(name), TASK, BATCH, reference, torch.Generator().manual_seed(0))
    assert found.shares["carried"][0] == pytest.approx(1)
    assert found.added["attention"][0] == pytest.approx(0, abs=1e-9)
    assert found.added["values"][0] > 0.01
    own, other = found.picks["values"]
    assert other > own


@pytest.mark.parametrize("name", WORDS)
def test_phases_mean_nothing(name: str) -> None:
    model = made(name)
    assert not has_phases(model, TASK)
    with pytest.raises(ValueError, match="phases are read of models with") as refusal:
        read_phases(model, TASK)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("target", ["paper", "bayes"])
def test_edges_are_those_that_an_exchange_shows(lags: tuple[int, ...], target: str) -> None:
    """Every edge with data scores under exact patching, and no other. Masks show when cut, or filled with noise."""
    task = sih.Task(TASK.P, lags, 24)
    words: dict[str, Any] = {"beta": 3.0} if target == "paper" else {}
    model = sih.construct(task, kind="relative", target=target, **words)
    truth = {(edge.source, edge.reader): edge.role for edge in sih.circuit_edges(model)}
    assert truth.keys() <= {(edge.source, edge.reader) for edge in candidate_edges(model)}
    scores = sih.edge_scores(model, sih.counterfactual_pairs(task, size=1), "exact")
    data = {ends for ends, role in truth.items() if role != "mask"}
    assert {(edge.source, edge.reader) for edge, score in scores.items() if score} == data
    heads = ("1.1", "1.2") if target == "bayes" else ("1.1",)
    assert data == {
        *((("token", f"{head}/{use}")) for head in heads for use in ("query", "key")),
        *((f"{head}/offset", "2.1/value") for head in heads),
        *((f"2.1/{head}/offset", "3.1/query") for head in heads),
        ("token", "3.1/value"),
        ("3.1/token", "3/stream"),
    }
    tokens = sih.sample(task, 4, rng=0).tokens
    output = model.run(tokens).output
    for source, reader in truth.keys() - data:
        where = model.columns(source, int(reader[0]) - 1)

        def cut(value: torch.Tensor, where: slice = where, size: float = 0.0) -> torch.Tensor:
            value = value.clone()
            rng = torch.Generator().manual_seed(2)
            value[..., where] = size * torch.rand(value[..., where].shape, generator=rng).double()
            return value

        runs = (model.run(tokens, replace={reader: partial(cut, size=size)}) for size in (0.0, 1.0))
        moved = max((run.output - output).abs().max().item() for run in runs)
        assert moved > 1e-6, (source, reader)


def test_edges_are_found_among_decoys() -> None:
    circuit = sih.known_circuit("1.2.3-relative")
    assert isinstance(circuit.model, sih.DisentangledRelativeTransformer)
    assert circuit.model.config.heads == (2, 2, 1)
    assert circuit.edges == sih.circuit_edges(
        sih.construct(circuit.task, kind="relative", beta=3.0)
    )
    pairs = sih.counterfactual_pairs(circuit.task, size=1)
    scores = sih.edge_scores(circuit.model, pairs, "eap")
    true = {(edge.source, edge.reader) for edge in circuit.edges if edge.role != "mask"}
    masks = {(edge.source, edge.reader) for edge in circuit.edges if edge.role == "mask"}
    sizes = {(edge.source, edge.reader): abs(score) for edge, score in scores.items()}
    others = max(size for ends, size in sizes.items() if ends not in true | masks)
    assert min(sizes[ends] for ends in true) > others > 0
    with pytest.raises(ValueError, match="must be disentangled, with absolute positions"):
        circuit.as_standard()


def test_decoys_of_the_bayes_circuit_leave_the_law() -> None:
    model = made("bayes")
    among = with_decoys(model, rng=0, shift=0.05)
    tokens = sih.sample(TASK, 8, rng=9).tokens
    assert 0 < (among.predict(tokens) - model.predict(tokens)).abs().max() < 0.1
    assert sih.circuit_edges(among) == sih.circuit_edges(model)


@pytest.mark.parametrize("name", ["paper", "standard"])
def test_its_heads_are_matched_and_its_circuit_named(name: str) -> None:
    model = sih.construct(TASK, kind="relative", **{**WORDS[name], "beta": 100.0})
    trace = model.trace(BATCH.tokens)
    nearest = resemblances(trace.attention, BATCH.tokens, TASK)[0]
    assert nearest.circuit == "paper, relative"
    assert nearest.distance < 1e-6
    other = sih.construct(TASK, kind="relative").trace(BATCH.tokens)
    for found, wanted in zip(trace.attention, other.attention, strict=True):
        assert match_heads(found, wanted) == [0]
    absolute = sih.construct(TASK, beta=100.0).trace(BATCH.tokens)
    first, last = ((t.between_tokens[0], t.between_tokens[2]) for t in (trace, absolute))
    assert (first[0] - last[0])[:, :, 4:].abs().max() < 1e-9
    said = str(sih.diagnose(TASK, BATCH.tokens, model=model))
    assert "paper, relative" in said


@pytest.mark.parametrize("name", WORDS)
def test_it_is_drawn_and_refused_where_it_has_no_form(name: str) -> None:
    model = made(name)
    assert "offset" in {ax.get_xlabel() for ax in model.plot().axes}
    with pytest.raises(ValueError, match="only standard and disentangled models can be exported"):
        sih.to_transformer_lens(model)
    with pytest.raises(ValueError, match="model must be a disentangled transformer"):
        inspect.unwrap(sih.to_standard)(model)  # the types are checked before
