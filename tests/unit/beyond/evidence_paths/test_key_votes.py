"""Votes by key add up to the parts, parts to the scores, and each is what a plain loop over the definition says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.circuits import blocks_of

import sih
from sih.beyond.evidence_paths.key_votes import (
    KeyVotes,
    averages,
    last_forms,
    path_votes,
    written_votes,
)
from sih.beyond.evidence_paths.score_shares import products
from sih.beyond.evidence_paths.stream_pieces import last_stream, path_pieces

TASK = sih.Task(sih.random_transition_matrix(3, rng=1), lags=(1, 2, 3), length=20)
TOKENS = sih.sample(TASK, 1, rng=2).tokens[0]
REFERENCE = sih.sample(TASK, 12, rng=3)


def trained(kind: str) -> Any:
    """Give a model of random weights in double precision, one with two heads in its last layer."""
    if kind == "disentangled":
        model: Any = sih.DisentangledTransformer(3, 20, heads=(1, 2, 1), dtype=torch.float64, rng=4)
        for A in model.A:
            A.data *= 20
    elif kind in ("keys", "rotary", "start"):
        offsets = "both" if kind == "start" else kind
        model = sih.RelativeTransformer(
            3, 4, dim=12, qk_dim=6, heads=(1, 2, 1), offsets=offsets, start=kind == "start",
            dtype=torch.float64, rng=4,
        )  # fmt: skip
    else:
        heads = (1, 2, 2) if kind == "standard" else (1, 2, 1, 1)
        model = sih.Transformer(
            3, 20, dim=12, qk_dim=6, heads=heads, mlp_dim=None, dtype=torch.float64, rng=4
        )
        for weight in model.parameters():
            weight.data *= 3
    return model.requires_grad_(False)


def adds_up(found: KeyVotes, scores: torch.Tensor, lags: tuple[int, ...], within: float) -> None:
    """Compare the sum of all parts with the scores at the candidates, less their mean, by a loop."""
    total = found.common + sum(found.parts.values())
    for i in range(lags[-1] - 1, len(scores)):
        wanted = torch.stack([scores[i, i - k + 1] for k in lags])
        wanted = wanted - wanted.mean()
        assert (found.score[i] - wanted).abs().max() < within
        assert (total[i] - wanted).abs().max() < within
    for name, votes in found.votes.items():
        assert (votes.sum(dim=1) - found.parts[name]).abs().max() < within, name


@pytest.mark.parametrize(
    "kind", ["disentangled", "standard", "four layers", "keys", "rotary", "start"]
)
def test_votes_add_up_to_parts_and_parts_to_scores(kind: str) -> None:
    model = trained(kind)
    known = averages(model, REFERENCE)
    found = path_votes(model, TASK, TOKENS, known)
    last = len(model.config.heads)
    trace = model.trace(TOKENS[None])
    scores = torch.stack(
        [trace[f"{last}.{n}/scores"][0] for n in range(1, model.config.heads[-1] + 1)]
    ).mean(dim=0)[model.first :, model.first :]
    adds_up(found, scores / model.config.temperature, TASK.lags, 1e-9)
    assert found.score.abs().max() > 1e-2
    parts: dict[str, Any] = {}
    for forms in last_forms(model, TASK):  # the paths of `score_shares`, not summed over keys
        pieces, h = path_pieces(model, trace, known.means), last_stream(model, trace)
        for name, part in products(pieces, forms, h, TASK, mirrored=True):
            parts[str(name)] = parts.get(str(name), 0) + part[0]
    for name, part in found.parts.items():
        wanted = parts[name] - parts[name].mean(dim=-1, keepdim=True)
        assert (part - wanted)[2:].abs().max() < 1e-9, name


def test_a_vote_is_what_a_key_adds_by_the_definition() -> None:
    model = trained("standard")
    known = averages(model, REFERENCE)
    found = path_votes(model, TASK, TOKENS, known)
    trace, layer = model.trace(TOKENS[None]), model.each_layer()[1]
    a, mean_a = trace["2.2/attention"][0], known.means["2.2/attention"]
    y, mean_y = trace["1/stream"][0] @ layer.V[1], known.means["2.2/value"] @ layer.V[1]
    h, m = trace["2/stream"][0], path_pieces(model, trace, known.means)[""][1][0]
    i, key = 13, 9
    rows: dict[str, Callable[[int], Any]] = {
        "attention": lambda n: (a - mean_a)[n, key] * (y + mean_y)[key] / 2,
        "values": lambda n: (a + mean_a)[n, key] / 2 * (y - mean_y)[key],
    }
    for way, row in rows.items():
        wanted = []
        for k in TASK.lags:
            j, total = i - k + 1, 0.0
            for forms in last_forms(model, TASK):
                W = forms.matrices[0][0]
                total += float(row(i) @ W @ (m + h)[j] / 2 + (m + h)[i] @ W @ row(j) / 2)
            wanted.append(total)
        expected = torch.tensor(wanted, dtype=torch.float64) - sum(wanted) / 3
        assert (found.votes[f"2.2:{way}"][i, key] - expected).abs().max() < 1e-9


CIRCUITS: dict[str, tuple[dict[str, Any], str]] = {
    "mask": ({}, "values"),
    "position": ({"third": "position"}, "values"),
    "sum": ({"evidence": "sum"}, "values"),
    "one head": ({"heads": 1}, "values"),
    "mixed": ({"target": "bayes", "temper": 0.01}, "values"),
    "unmixed": ({"target": "bayes", "heads": 3, "temper": 0.01}, "values"),
    "both sides": ({"target": "bayes", "heads": 1, "reading": "both", "temper": 0.01}, "values"),
    "looking": ({"target": "looking", "temper": 0.01}, "attention"),
}


@pytest.mark.parametrize("case", CIRCUITS)
def test_circuits_have_all_in_the_channel_that_was_written(case: str) -> None:
    options, way = CIRCUITS[case]
    model = sih.construct(TASK, **options)
    blocks = blocks_of(model.circuit, TASK)
    found = written_votes(blocks, TASK, TOKENS)
    scores = model.trace(TOKENS[None])["3.1/scores"][0]
    adds_up(found, scores, TASK.lags, 1e-5)
    assert {name.partition(":")[2] for name in found.votes} == {way}
    assert set(found.parts) <= {*found.votes, "1.1"}
    assert found.common[2 * TASK.max_lag :].abs().max() < 1e-6, "without evidence no lag is ahead"


def test_each_key_of_the_papers_circuit_votes_for_the_lag_that_layer_1_found() -> None:
    model = sih.construct(TASK)
    blocks = blocks_of(model.circuit, TASK)
    found, attention = written_votes(blocks, TASK, TOKENS), model.trace(TOKENS[None]).attention
    for i in range(10, 20):
        for head in range(3):
            for key in range(3, i + 1):
                if attention[1][0, head, i, key] < 1e-9:
                    continue
                votes = found.votes[f"2.{head + 1}:values"][i, key]
                stored = torch.stack([attention[0][0, 0, key, key - k] for k in TASK.lags])
                assert (
                    votes - 100 * attention[1][0, head, i, key] * (stored - 1 / 3)
                ).abs().max() < 1e-9


def test_two_layers_have_no_votes() -> None:
    model = sih.Transformer(3, 20, dim=12, qk_dim=6, heads=(1, 1), mlp_dim=None, rng=0)
    with pytest.raises(ValueError, match="between the first layer and the last"):
        path_votes(model, TASK, TOKENS, averages(model, REFERENCE))


def test_a_vote_where_values_know_the_offset_by_the_definition() -> None:
    """What a head writes for a key has the vector of the offset from which it looks."""
    model, first = trained("start"), 1
    known = averages(model, REFERENCE)
    found = path_votes(model, TASK, TOKENS, known)
    trace, (_, middle, last) = model.trace(TOKENS[None]), model.each_layer()
    a, mean_a = trace["2.2/attention"][0], known.means["2.2/attention"]
    v, mean_v = trace["1/stream"][0] @ middle.V[1], known.means["2.2/value"] @ middle.V[1]
    h, m = trace["2/stream"][0, first:], path_pieces(model, trace, known.means)[""][1][0]
    u, (Q, K), scale = (m + h) / 2, (last.Q[0], last.K[0]), model.config.temperature

    def written(values: torch.Tensor, row: int, key: int) -> Any:
        return values[key] + middle.aV[1, min(row - key, 4)]

    def looked(token: int, key: int) -> Any:
        row = token + first
        both = written(v, row, key) + written(mean_v, row, key)
        return (a - mean_a)[row, key] * both / 2

    def carried(token: int, key: int) -> Any:
        row = token + first
        return (a + mean_a)[row, key] / 2 * (written(v, row, key) - written(mean_v, row, key))

    for way, d in {"2.2:attention": looked, "2.2:values": carried}.items():
        for i, key in ((13, 9), (13, 0), (7, 7)):
            wanted = []
            for k in TASK.lags:
                j = i - k + 1
                at_key = d(j, key) if key <= j + first else torch.zeros(12, dtype=torch.float64)
                query = d(i, key) @ Q @ (u[j] @ K + last.aK[0, k - 1])
                wanted.append((query + u[i] @ Q @ (at_key @ K)).item() / scale)
            expected = torch.tensor(wanted, dtype=torch.float64) - sum(wanted) / 3
            assert (found.votes[way][i, key] - expected).abs().max() < 1e-9, (way, i, key)
    assert found.votes["2.2:attention"][13, 9].abs().max() > 1e-6
