"""The mechanism, layer by layer."""

from __future__ import annotations

import math

import pytest
import torch
from support import oracles_circuit as oracle

import sih
from sih.circuits import circuit_weights
from sih.task import Task


def test_layer_1_stores_the_normalised_probabilities(task: Task, rng: torch.Generator) -> None:
    model = sih.construct(task)
    tokens = sih.sample(task, 3, rng=rng).tokens
    block = model.trace(tokens).stream("1.1/position")
    P, lags = task.P.tolist(), list(task.lags)
    for b, row in enumerate(tokens.tolist()):
        for i in range(1, task.length):  # p-tilde of the lags that do not reach before the start
            expected = [0.0] * task.length
            for k, p in zip(lags, oracle.normalised(row, P, lags, i), strict=True):
                if i >= k:
                    expected[i - k] = p
            assert block[b, i].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("lags", [(1, 2, 3), (1, 3), (1, 3, 4), (2, 5), (1, 4, 9)], ids=str)
@pytest.mark.parametrize("sink", [False, True])
def test_layer_2_gathers_without_mixing(
    lags: tuple[int, ...], sink: bool, rng: torch.Generator
) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 40)
    model = sih.construct(task, third="position", sink=sink)
    tokens = sih.sample(task, 2, rng=rng).tokens
    trace = model.trace(tokens)
    P = task.P.tolist()
    seen_by_some_head = set()
    i = 39
    for head in range(model.circuit.heads):
        block = trace.stream(f"2.{head + 1}/1.1/position")
        attention = trace.attention[1][:, head, i]
        offsets = [
            o
            for o in range(i - task.max_lag + 1)
            if model.circuit.head_of_offset[o % len(model.circuit.head_of_offset)] == head
        ]
        seen_by_some_head |= set(offsets)
        for b, row in enumerate(tokens.tolist()):
            for o in offsets:
                for k, p in zip(lags, oracle.normalised(row, P, list(lags), i - o), strict=True):
                    index = i - o - k
                    weight = attention[b, i - o].item()
                    if sink and index == 0:
                        assert block[b, i, 0].item() == pytest.approx(
                            weight * p + attention[b, 0].item(), abs=1e-12
                        )
                    else:
                        assert block[b, i, index].item() == pytest.approx(weight * p, abs=1e-12)
    assert seen_by_some_head == set(range(i - task.max_lag + 1))


def test_layer_3_copies_the_token_of_the_chosen_lag(task: Task, rng: torch.Generator) -> None:
    model = sih.construct(task, beta=math.inf)
    tokens = sih.sample(task, 6, rng=rng).tokens
    weights = circuit_weights(tokens, task, model.circuit)
    copied = model.trace(tokens).stream("3.1/token")
    decided = weights.max(dim=-1).values > 1 - 1e-9
    assert decided[:, model.circuit.first_exact_position :].float().mean() > 0.9
    for b, i in decided.nonzero().tolist():
        if i >= model.circuit.first_exact_position:
            lag = task.lags[int(weights[b, i].argmax())]
            assert copied[b, i].argmax() == tokens[b, i - lag + 1]
            assert copied[b, i].max() > 1 - 1e-8


def test_logit_readout_gives_a_row_of_p_where_one_token_is_copied(
    task: Task, rng: torch.Generator
) -> None:
    hard = sih.construct(task, beta=math.inf, readout="logit")
    tokens = sih.sample(task, 4, rng=rng).tokens
    plain = sih.construct(task, beta=math.inf)
    sure = circuit_weights(tokens, task, hard.circuit).max(dim=-1).values > 1 - 1e-12
    sure[:, : hard.circuit.first_exact_position] = False
    assert sure.any()
    assert (hard.predict(tokens) - plain.predict(tokens))[sure].abs().max() < 1e-8
