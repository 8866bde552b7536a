"""The weights do what the closed form says: for every lag set, every construction."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from support import oracles_circuit as oracle
from support.circuits import third_layer

import sih
from sih.circuits import circuit_weights
from sih.task import Task

ALL = [lags for size in range(1, 9) for lags in itertools.combinations(range(1, 9), size)]


SOME = [
    (1,),
    (4,),
    (1, 2),
    (2, 5),
    (1, 2, 3),
    (3, 5, 7),
    (1, 3, 4),
    (1, 4, 6),
    (1, 2, 4, 8),
    (2, 3, 4, 5, 6),
    (1, 2, 5, 6, 8),
]


SOME_MORE = [lags for lags in ALL if lags not in SOME]
assert len(ALL) == 255


Oracle = Callable[[list[int], list[list[float]], Any, int], list[float]]


def _mean(tokens: list[int], P: list[list[float]], c: Any, i: int) -> list[float]:
    return oracle.mean_evidence_weights(
        tokens, P, list(c.lags), list(c.head_of_offset), i, c.beta, c.temper
    )


def _sum(tokens: list[int], P: list[list[float]], c: Any, i: int) -> list[float]:
    return oracle.sum_evidence_weights(tokens, P, list(c.lags), list(c.head_of_offset), i, c.beta)


def _exact_mean(tokens: list[int], P: list[list[float]], c: Any, i: int) -> list[float]:
    return oracle.sum_evidence_weights(
        tokens, P, list(c.lags), list(c.head_of_offset), i, c.beta, mean=True
    )


def _two(tokens: list[int], P: list[list[float]], c: Any, i: int) -> list[float]:
    return oracle.two_lag_weights(tokens, P, list(c.lags), i, c.beta)


WAYS: dict[str, tuple[dict[str, Any], Oracle]] = {
    "mask": ({"third": "mask"}, _mean),
    "position": ({"third": "position"}, _mean),
    "one head": ({"heads": 1, "third": "position"}, _mean),
    "tempered": ({"temper": 0.5, "third": "position"}, _mean),
    "sum": ({"evidence": "sum", "beta": 3.0}, _sum),
    "sum, one head": ({"evidence": "sum", "beta": 3.0, "heads": 1}, _sum),
    "mean with a sink": ({"sink": True}, _exact_mean),
    "two lags": ({"target": "two-lags"}, _two),
}


def applicable(lags: tuple[int, ...]) -> Iterator[str]:
    for name in WAYS:
        if name == "two lags" and len(lags) != 2:
            continue
        if name == "mask":
            colours = sih.least_heads(lags).colours
            if len(set(colours)) != len(colours):  # a head takes two residues
                continue
        yield name


def check(lags: tuple[int, ...], name: str, seed: int) -> None:
    rng = torch.Generator().manual_seed(seed)
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 28)
    options, expected = WAYS[name]
    model = sih.construct(task, **options)
    tokens = torch.cat(
        [sih.sample(task, 2, rng=rng).tokens, torch.randint(3, (1, 28), generator=rng)]
    )
    found, law = third_layer(model, tokens), model.predict(tokens)
    closed = circuit_weights(tokens, task, model.circuit)
    P = task.P.tolist()
    for b, row in enumerate(tokens.tolist()):
        for i in range(model.circuit.first_exact_position, 28):
            weights = expected(row, P, model.circuit, i)
            assert found[b, i].tolist() == pytest.approx(weights, abs=1e-8)
            assert closed[b, i].tolist() == pytest.approx(weights, abs=1e-10)
            assert law[b, i].tolist() == pytest.approx(
                oracle.law(weights, row, P, list(lags), i), abs=1e-8
            )


@pytest.mark.parametrize("lags", SOME, ids=str)
def test_weights_equal_the_closed_form(lags: tuple[int, ...]) -> None:
    for name in applicable(lags):
        check(lags, name, seed=hash(lags) % 1000)


@pytest.mark.slow
@pytest.mark.parametrize("lags", SOME_MORE, ids=str)
def test_weights_equal_the_closed_form_for_all_lag_sets(lags: tuple[int, ...]) -> None:
    for name in applicable(lags):
        check(lags, name, seed=hash(lags) % 1000)


@pytest.mark.parametrize("name", WAYS)
def test_rows_before_the_first_are_not_claimed_for_nothing(name: str) -> None:
    """One position earlier the closed form fails somewhere (where there are no sinks): the first is not just safe."""
    lags = (2, 5) if name == "two lags" else (1, 2, 4)
    if name == "mask":
        lags = (1, 2, 3)
    rng = torch.Generator().manual_seed(0)
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 28)
    options, _ = WAYS[name]
    model = sih.construct(task, **options)
    tokens = torch.randint(3, (20, 28), generator=rng)
    gap = (
        (third_layer(model, tokens) - circuit_weights(tokens, task, model.circuit))
        .abs()
        .amax(dim=(0, 2))
    )
    assert gap[model.circuit.first_exact_position :].max() < 1e-10
    if model.circuit.sink:
        assert (
            model.circuit.first_exact_position == task.max_lag - 1
        )  # the first position whose next token a lag makes
    elif name != "one head":
        assert gap[model.circuit.first_exact_position - 1] > 1e-6


def test_the_sum_form_is_selective_weights(task: Task, rng: torch.Generator) -> None:
    tokens = sih.sample(task, 8, rng=rng).tokens
    for evidence, sink in (("sum", None), ("mean", True)):
        model = sih.construct(task, evidence=evidence, sink=sink, beta=4.0)
        expected = sih.selective_weights(tokens, task, beta=4.0, evidence=evidence)  # type: ignore[arg-type]
        first = task.max_lag - 1
        assert (third_layer(model, tokens) - expected)[:, first:].abs().max() < 1e-12
        assert (model.predict(tokens) - sih.mixture(expected, tokens, task))[
            :, first:
        ].abs().max() < 1e-12


def test_the_limit_is_hard_selection(task: Task, rng: torch.Generator) -> None:
    model = sih.construct(task, beta=math.inf, evidence="sum")
    tokens = sih.sample(task, 10, rng=rng).tokens
    limit = sih.selective_weights(tokens, task, beta=math.inf, evidence="sum")
    assert (third_layer(model, tokens) - limit)[:, task.max_lag - 1 :].abs().max() < 1e-5
