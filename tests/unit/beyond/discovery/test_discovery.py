"""Scores of edges against definitions worked out edge by edge, and judgements against enumeration."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

import sih
from sih.beyond.discovery.decoys import rotated, with_decoys
from sih.beyond.discovery.discovery import (
    METHODS,
    Pairs,
    eap,
    eap_ig,
    edge_scores,
    exact,
    judge,
    patch_edges,
    roc,
)
from sih.beyond.discovery.edges import Edge, by_writer, candidate_edges
from sih.models import Model


@pytest.fixture(scope="module")
def case() -> tuple[sih.DisentangledTransformer, Pairs]:
    task = sih.Task(sih.random_transition_matrix(3, rng=4, concentration=0.3), (1, 2), length=12)
    model = with_decoys(sih.construct(task, beta=3.0), rng=0, decoys=(1, 0, 0), shift=0.05)
    return model, sih.counterfactual_pairs(task, 2)


def both(case: tuple[sih.DisentangledTransformer, Pairs]) -> list[Model]:
    return [case[0], rotated(case[0], rng=0)]


def test_pairs_share_tokens_and_differ_in_their_lag(
    case: tuple[sih.DisentangledTransformer, Pairs],
) -> None:
    pairs = case[1]
    assert pairs.clean.lags.tolist() == [1, 1, 2, 2]
    assert pairs.corrupt.lags.tolist() == [2, 2, 1, 1]
    assert torch.equal(pairs.clean.tokens[:, :2], pairs.corrupt.tokens[:, :2])
    for batch in (pairs.clean, pairs.corrupt):
        posterior = sih.lag_posterior(batch.tokens, pairs.task)[:, -1]
        assert (posterior[range(4), batch.lags - 1] > 0.9).all()
    truth = sih.known_lag(pairs.clean.tokens, pairs.clean.lags, pairs.task)
    other = sih.known_lag(pairs.clean.tokens, pairs.corrupt.lags, pairs.task)
    assert pairs.metric(truth) > 0 > pairs.metric(other)
    assert pairs.metric(truth - other) == pytest.approx(
        ((truth - other) ** 2).sum(-1)[:, -3:].mean().item()
    )


def test_patching_an_edge_is_patching_what_its_reader_reads(
    case: tuple[sih.DisentangledTransformer, Pairs],
) -> None:
    """One edge by hand; all edges of a reader together are the reader's whole input, as `sih.patch` puts it there."""
    model, pairs = case
    clean, corrupt = (model.run(batch.tokens) for batch in (pairs.clean, pairs.corrupt))
    stream = model.stream(1)
    mixed = clean["1/stream"].clone()
    mixed[..., stream["1.1/position"]] = corrupt["1.1/position"]
    by_hand = model.run(pairs.clean.tokens, replace={"2.1/value": mixed})
    edge = Edge("1.1/position", "2.1/value")
    wanted = float(pairs.metric(model.law(clean.output)) - pairs.metric(model.law(by_hand.output)))
    assert exact(model, pairs, [edge])[edge] == pytest.approx(wanted, abs=1e-12)
    for kind in both(case):
        edges = [edge for edge in candidate_edges(kind) if edge.reader == "3.1/query"]
        deltas = {
            e.source: kind.run(pairs.corrupt.tokens)[e.source]
            - kind.run(pairs.clean.tokens)[e.source]
            for e in edges
        }
        found = patch_edges(kind, pairs.clean.tokens, edges, deltas)
        torch.testing.assert_close(
            found, sih.patch(kind, pairs.clean, pairs.corrupt, "3.1/query"), rtol=0, atol=1e-9
        )


def test_eap_is_the_slope_of_patching(case: tuple[sih.DisentangledTransformer, Pairs]) -> None:
    _, pairs = case
    step = 1e-5
    for model in both(case):
        scores = eap(model, pairs)
        some = random.Random(0).sample(sorted(scores), 6)
        for edge in some:
            delta = (
                model.run(pairs.corrupt.tokens)[edge.source]
                - model.run(pairs.clean.tokens)[edge.source]
            )
            up, down = (
                pairs.metric(
                    patch_edges(
                        model, pairs.clean.tokens, [edge], {edge.source: sign * step * delta}
                    )
                )
                for sign in (1, -1)
            )
            assert scores[edge] == pytest.approx(-float(up - down) / (2 * step), rel=1e-4, abs=1e-8)


def test_integrated_gradients_are_slopes_on_the_way_to_the_corrupt_inputs(
    case: tuple[sih.DisentangledTransformer, Pairs],
) -> None:
    """The mean of five slopes by differences, at a tenth, three tenths, ... of the way between the one-hot tokens."""
    model, pairs = case
    clean, corrupt = (model.run(batch.tokens) for batch in (pairs.clean, pairs.corrupt))
    scores, step = eap_ig(model, pairs), 1e-5
    for source, reader in (
        ("1.1/position", "2.1/value"),
        ("token", "3.1/value"),
        ("2.1/position", "3.1/key"),
    ):
        columns = model.stream(int(reader[0]) - 1)[source]
        slopes = []
        for way in (0.1, 0.3, 0.5, 0.7, 0.9):
            token = (1 - way) * clean["token"] + way * corrupt["token"]
            read = model.run(pairs.clean.tokens, replace={"token": token})[
                f"{int(reader[0]) - 1}/stream"
            ]
            found = []
            for sign in (1, -1):
                moved = read.clone()
                moved[..., columns] += sign * step * (corrupt[source] - clean[source])
                run = model.run(pairs.clean.tokens, replace={"token": token, reader: moved})
                found.append(float(pairs.metric(model.law(run.output))))
            slopes.append((found[0] - found[1]) / (2 * step))
        assert scores[Edge(source, reader)] == pytest.approx(-sum(slopes) / 5, rel=1e-4, abs=1e-8)


def test_where_nothing_is_curved_all_methods_agree(
    case: tuple[sih.DisentangledTransformer, Pairs],
) -> None:
    """Into values and the readout the output is linear in what one edge carries."""
    model, pairs = case
    last = [edge for edge in candidate_edges(model) if edge.reader.startswith("3")]
    found = {method: edge_scores(model, pairs, method) for method in ("eap", "atp*")}
    found["exact"] = exact(model, pairs, last)
    for edge in last:
        if edge.reader in ("3.1/value", "3/stream"):
            for method in ("eap", "atp*"):
                assert found[method][edge] == pytest.approx(found["exact"][edge], abs=1e-10)
        else:  # the softmax computed anew, and then linear
            assert found["atp*"][edge] == pytest.approx(found["exact"][edge], abs=1e-10)
    total = sum(score for edge, score in found["eap"].items() if edge.source == "1.1/position")
    assert edge_scores(model, pairs, "attribution")[
        Edge("1.1/position", "2.1/value")
    ] == pytest.approx(total)


@pytest.mark.parametrize("offsets", ["both", "rotary"])
def test_edges_of_a_kind_whose_scores_know_the_offset(offsets: str) -> None:
    """Every edge patched by hand, and slopes by differences, with a start token's row in every value."""
    task = sih.Task(sih.random_transition_matrix(3, rng=4, concentration=0.3), (1, 2), length=12)
    pairs = sih.counterfactual_pairs(task, 1)
    sizes = {"dim": 6, "qk_dim": 4, "heads": (1, 1, 1), "start": True}
    model = sih.RelativeTransformer(3, 3, **sizes, offsets=offsets, dtype=torch.float64, rng=1)  # type: ignore[arg-type]
    clean, corrupt = (model.trace(batch.tokens) for batch in (pairs.clean, pairs.corrupt))
    found = {method: edge_scores(model, pairs, method) for method in METHODS}
    assert {edge.source for edge in found["exact"]} == {
        "token",
        *(f"{n}.1/output" for n in (1, 2, 3)),
    }
    for edge, score in found["exact"].items():
        delta, moved = corrupt[edge.source] - clean[edge.source], []
        for size in (1.0, 1e-5, -1e-5):
            read = clean[edge.reader] + size * delta
            run = model.run(pairs.clean.tokens, replace={edge.reader: read})
            moved.append(float(pairs.metric(model.law(run.output)).detach()))
        assert score == pytest.approx(
            float(pairs.metric(model.law(clean.output))) - moved[0], abs=1e-12
        )
        assert found["eap"][edge] == pytest.approx((moved[2] - moved[1]) / 2e-5, rel=1e-4, abs=1e-8)
    for edge in found[
        "atp*"
    ]:  # all but the softmax is a straight line into the last layer's scores
        if edge.reader in ("3.1/query", "3.1/key"):
            read = clean[edge.reader] + corrupt[edge.source] - clean[edge.source]
            run = model.run(pairs.clean.tokens, replace={edge.reader: read})
            attention = (
                clean["3.1/attention"].clone().requires_grad_(),
                run["3.1/attention"].detach(),
            )
            law = model.law(
                model.run(pairs.clean.tokens, replace={"3.1/attention": attention[0]}).output
            )
            (slope,) = torch.autograd.grad(pairs.metric(law), attention[0])
            lost = -float(((attention[1] - attention[0].detach()) * slope).sum())
            assert found["atp*"][edge] == pytest.approx(lost, abs=1e-12)


def test_a_soft_circuit_is_found_and_a_saturated_one_is_lost_on_slopes() -> None:
    areas = {}
    for name in ("1.2.3-soft", "1.2.3-hard"):
        circuit = sih.known_circuit(name, seed=2)
        pairs = sih.counterfactual_pairs(circuit.task, 1)
        areas[name] = judge(edge_scores(circuit.model, pairs, "eap"), circuit.edges).area
    assert areas["1.2.3-soft"] > 0.99
    assert areas["1.2.3-hard"] < 0.9


def test_judgements_are_those_of_enumeration() -> None:
    edges = [Edge(str(i), "3/stream") for i in range(8)]
    truth = [
        Edge("0", "3/stream", "value"),
        Edge("3", "3/stream", "score"),
        Edge("5", "3/stream", "readout"),
    ]
    mask = Edge("6", "3/stream", "mask")
    scores = dict(zip(edges, (-3.0, 2.0, 1.0, 1.0, 0.0, 0.0, 9.0, 1.0), strict=True))
    found = judge(scores, [*truth, mask])
    true = [abs(scores[edge]) for edge in edges if edge.source in "035"]
    others = [abs(scores[edge]) for edge in edges if edge.source in "1247"]
    pairs = list(itertools.product(true, others))
    assert found.area == pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs))
    assert found.ties == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))
    orders, hits = 0, 0.0
    judged = [(abs(scores[edge]), edge.source in "035") for edge in edges if edge != edges[6]]
    for order in itertools.permutations(range(7)):  # every way to break the ties
        ranked = sorted(order, key=lambda i: -judged[i][0])
        hits += sum(judged[i][1] for i in ranked[:3]) / 3
        orders += 1
    assert found.precision == pytest.approx(hits / orders)
    assert found.guessed == pytest.approx(3 / 7)
    xs, ys = roc(scores, [*truth, mask])
    area = sum(
        (x2 - x1) * (y1 + y2) / 2
        for (x1, x2), (y1, y2) in zip(itertools.pairwise(xs), itertools.pairwise(ys), strict=True)
    )
    assert area == pytest.approx(found.area)
    assert (xs[-1], ys[-1]) == (1, 1)


def test_precision_counts_as_many_edges_as_are_true() -> None:
    edges = [Edge(str(i), "3/stream") for i in range(6)]
    truth = [Edge("0", "3/stream", "value"), Edge("3", "3/stream", "score")]
    found = judge(dict(zip(edges, (6.0, 5.0, 4.0, 3.0, 2.0, 1.0), strict=True)), truth)
    assert found.precision == 1 / 2  # of the first two one is true; the other is the fourth
    assert (
        judge(dict(zip(edges, (6.0, 4.0, 3.0, 5.0, 2.0, 1.0), strict=True)), truth).precision == 1
    )
    assert (
        judge(dict(zip(edges, (2.0, 6.0, 5.0, 4.0, 3.0, 1.0), strict=True)), truth).precision == 0
    )


def test_wrong_input() -> None:
    task = sih.Task([[0.7, 0.3], [0.4, 0.6]], (2,), 8)
    with pytest.raises(ValueError, match="the task has one"):
        sih.counterfactual_pairs(task, 2)
    pairs = sih.counterfactual_pairs(sih.Task(task.P, (1, 2), 8), 1)
    with pytest.raises(
        ValueError, match=f"method must be one of {', '.join(METHODS)}".replace("*", r"\*")
    ):
        edge_scores(sih.construct(pairs.task), pairs, "guess")
    assert by_writer(()) == ()
