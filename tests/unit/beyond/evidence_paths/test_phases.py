"""Phases of weights written by hand, and of a standard model against products written out."""

import itertools
import math

import numpy as np
import pytest
import torch

import sih
from sih.beyond.evidence_paths.phases import by_offset, period, read_phases
from sih.circuits.looking import simplex
from sih.task import Task


def test_the_looking_circuit_has_the_phases_that_were_written(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2, 3), 64)
    model = sih.construct(task, target="looking", temper=1.0, looking=1.0)
    found = read_phases(model, task)
    assert found.period == {"2.1": 3, "2.2": 3}
    assert min(found.explained.values()) == pytest.approx(1)
    corners = simplex(3)
    colours = model.circuit.head_of_offset
    expected = [corners[colours[o % 3], 1].item() for o in range(64)]
    assert found.looks["2.2"] == pytest.approx(expected, abs=1e-12)
    assert found.votes["key"] > 0
    assert found.cosine["key"] == pytest.approx(1)
    assert found.votes["query"] == 0
    flipped = model
    for head in ("2.1", "2.2"):
        flipped.block(head, "position", "1.1/position").neg_()
    assert read_phases(flipped, task).cosine["key"] == pytest.approx(-1)


def test_reads_of_the_querys_row_vote_for_the_lag_found(rng: torch.Generator) -> None:
    """G and R of one cosine each: sum over o of cos(a(o + k)) cos(a(k0 - 1 - o) + b) is cos(a(k + k0 - 1) + b) / 2."""
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 80)
    model = sih.DisentangledTransformer(
        3, 80, (1, 1, 1), temperature=1.0, init="zeros", dtype=torch.float64
    )
    place = torch.arange(80, dtype=torch.float64)
    turn = torch.pi / 2
    model.block("2.1", "position", "1.1/position").copy_(torch.cos(turn * (place[:, None] - place)))
    model.block("3.1", "2.1/position", "position").copy_(
        torch.cos(turn * (place[:, None] - place) - turn)
    )
    found = read_phases(model, task)
    phase = turn * (torch.tensor([[1.0, 2.0]]) + torch.tensor([[1.0], [2.0]]) - 1) - turn
    W = torch.cos(phase) / 2
    W = W - W.mean(0) - W.mean(1, keepdim=True) + W.mean()
    assert found.votes["query"] == pytest.approx(W.trace().item(), abs=0.02)


def test_a_standard_models_phases_are_products_of_its_weights(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), (1, 2), 30)
    model = sih.Transformer(3, 30, dim=8, qk_dim=4, heads=(1, 2, 1), rng=rng).double()
    first, second, third = model.each_layer()
    E = model.position
    G = E @ second.Q[1] @ (E @ first.V[0] @ second.K[1]).T / model.config.temperature
    R = E @ third.Q[0] @ (E @ second.V[1] @ third.K[0]).T / model.config.temperature
    found = read_phases(model, task)
    assert found.looks["2.2"] == pytest.approx([G.diagonal(-o).mean().item() for o in range(30)])
    assert found.reads_key["2.2"] == pytest.approx(
        [R.diagonal(-o).mean().item() for o in range(30)]
    )
    with pytest.raises(ValueError, match=r"heads \(1, H, 1\); got \(1, 1\)"):
        read_phases(sih.Transformer(3, 30, heads=(1, 1)), task)
    with pytest.raises(ValueError, match="without MLPs"):
        read_phases(sih.Transformer(3, 30, heads=(1, 1, 1), mlp_dim=4), task)


def test_votes_of_any_model_are_the_definition_in_loops(rng: torch.Generator) -> None:
    """W[k, k0]: what a head that looks by G moves, read by R, summed over heads and averaged over far offsets."""
    lags, time = (1, 3, 4), 40
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, time)
    model = sih.Transformer(3, time, dim=8, qk_dim=4, heads=(1, 2, 1), rng=rng).double()
    found = read_phases(model, task)
    far = range(9, time - 5)  # past eight, where o + 1 + k - k0 and o + k are offsets too
    for row in ("key", "query"):
        W = np.zeros((3, 3))
        for (a, k), (b, k0), name in itertools.product(
            enumerate(lags), enumerate(lags), found.looks
        ):
            G, by_key, by_query = found.looks[name], found.reads_key[name], found.reads_query[name]
            for o in far:
                term = (
                    by_key[o] * G[o + 1 + k - k0]
                    if row == "key"
                    else by_query[o + 1 - k0] * G[o + k]
                )
                W[a, b] += term / len(far)
        centred = W - W.mean(axis=0, keepdims=True) - W.mean(axis=1, keepdims=True) + W.mean()
        identity = np.eye(3) - 1 / 3
        cosine = (centred * identity).sum() / math.sqrt((centred**2).sum() * (identity**2).sum())
        assert found.votes[row] == pytest.approx(centred.trace() / 2)
        assert found.cosine[row] == pytest.approx(cosine)


def test_what_a_period_explains_is_the_share_of_the_variance() -> None:
    values = 5 + np.tile([0.0, 1.0, 3.0], 20) + np.random.default_rng(0).normal(0, 0.3, 60)
    n, explained = period(torch.from_numpy(values))
    far = range(9, 60)
    means = [np.mean([values[o] for o in far if o % 3 == r]) for r in range(3)]
    left = sum((values[o] - means[o % 3]) ** 2 for o in far)
    whole = sum((values[o] - np.mean(values[9:])) ** 2 for o in far)
    assert n == 3
    assert explained == pytest.approx(1 - left / whole)
    assert 0.9 < explained < 0.999


def test_periods() -> None:
    offset = torch.arange(60.0)
    assert period(torch.cos(2 * torch.pi * offset / 5))[0] == 5
    assert period((offset % 6 == 2).double())[0] == 6
    assert period(torch.zeros(40)) == (1, 1.0)
    assert by_offset(torch.arange(9.0).view(3, 3)).tolist() == [4.0, 5.0, 6.0]
    with pytest.raises(ValueError, match="past offset 8"):
        period(torch.zeros(10))
