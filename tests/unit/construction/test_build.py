"""The weights do what the closed form says: for every lag set, every construction, layer by layer."""

from __future__ import annotations

import itertools
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from support import oracles_circuit as oracle
from support.circuits import third_layer

import sih
from sih.construction import Circuit, circuit_weights
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

Oracle = Callable[[list[int], list[list[float]], Circuit, int], list[float]]


def _mean(tokens: list[int], P: list[list[float]], c: Circuit, i: int) -> list[float]:
    return oracle.mean_evidence_weights(tokens, P, list(c.lags), list(c.colours), i, c.beta, c.temper)


def _sum(tokens: list[int], P: list[list[float]], c: Circuit, i: int) -> list[float]:
    return oracle.sum_evidence_weights(tokens, P, list(c.lags), list(c.colours), i, c.beta)


def _exact_mean(tokens: list[int], P: list[list[float]], c: Circuit, i: int) -> list[float]:
    return oracle.sum_evidence_weights(tokens, P, list(c.lags), list(c.colours), i, c.beta, mean=True)


def _two(tokens: list[int], P: list[list[float]], c: Circuit, i: int) -> list[float]:
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
    tokens = torch.cat([sih.sample(task, 2, rng=rng).tokens, torch.randint(3, (1, 28), generator=rng)])
    found, law = third_layer(model, tokens), model.predict(tokens)
    closed = circuit_weights(tokens, task, model.circuit)
    P = task.P.tolist()
    for b, row in enumerate(tokens.tolist()):
        for i in range(model.circuit.first_row, 28):
            weights = expected(row, P, model.circuit, i)
            assert found[b, i].tolist() == pytest.approx(weights, abs=1e-8)
            assert closed[b, i].tolist() == pytest.approx(weights, abs=1e-10)
            assert law[b, i].tolist() == pytest.approx(oracle.law(weights, row, P, list(lags), i), abs=1e-8)


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
    """One position earlier the closed form fails somewhere (where there are no sinks): `first_row` is not just safe."""
    lags = (2, 5) if name == "two lags" else (1, 2, 4)
    if name == "mask":
        lags = (1, 2, 3)
    rng = torch.Generator().manual_seed(0)
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 28)
    options, _ = WAYS[name]
    model = sih.construct(task, **options)
    tokens = torch.randint(3, (20, 28), generator=rng)
    gap = (third_layer(model, tokens) - circuit_weights(tokens, task, model.circuit)).abs().amax(dim=(0, 2))
    assert gap[model.circuit.first_row :].max() < 1e-10
    if model.circuit.sink:
        assert model.circuit.first_row == task.max_lag - 1  # the first position whose next token a lag makes
    elif name != "one head":
        assert gap[model.circuit.first_row - 1] > 1e-6


def test_the_sum_form_is_selective_weights(task: Task, rng: torch.Generator) -> None:
    tokens = sih.sample(task, 8, rng=rng).tokens
    for evidence, sink in (("sum", None), ("mean", True)):
        model = sih.construct(task, evidence=evidence, sink=sink, beta=4.0)  # type: ignore[arg-type]
        expected = sih.selective_weights(tokens, task, beta=4.0, evidence=evidence)  # type: ignore[arg-type]
        first = task.max_lag - 1
        assert (third_layer(model, tokens) - expected)[:, first:].abs().max() < 1e-12
        assert (model.predict(tokens) - sih.mixture(expected, tokens, task))[:, first:].abs().max() < 1e-12


def test_the_papers_form_tends_to_proposition_1(rng: torch.Generator) -> None:
    """With beta / K for beta, as long sequences make every head's count (T - k_hat) / K."""
    task = Task(sih.random_transition_matrix(4, rng=rng), (1, 2, 3), 1200)
    circuit = sih.construct(task.with_length(20), beta=20.0).circuit
    tokens = torch.randint(4, (8, 1200), generator=rng)  # no lag wins, so the weights stay open
    gap = (
        (circuit_weights(tokens, task, circuit) - sih.selective_weights(tokens, task, beta=60.0)).abs().amax(dim=(0, 2))
    )
    assert gap[-100:].max() < 0.01
    assert gap[20:40].max() > 10 * gap[-100:].max()


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
def test_layer_2_gathers_without_mixing(lags: tuple[int, ...], sink: bool, rng: torch.Generator) -> None:
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
        offsets = [o for o in range(i - task.max_lag + 1) if model.circuit.head_of(o) == head]
        seen_by_some_head |= set(offsets)
        for b, row in enumerate(tokens.tolist()):
            for o in offsets:
                for k, p in zip(lags, oracle.normalised(row, P, list(lags), i - o), strict=True):
                    index = i - o - k
                    weight = attention[b, i - o].item()
                    if sink and index == 0:
                        assert block[b, i, 0].item() == pytest.approx(weight * p + attention[b, 0].item(), abs=1e-12)
                    else:
                        assert block[b, i, index].item() == pytest.approx(weight * p, abs=1e-12)
    assert seen_by_some_head == set(range(i - task.max_lag + 1))


def test_layer_3_copies_the_token_of_the_chosen_lag(task: Task, rng: torch.Generator) -> None:
    model = sih.construct(task, beta=math.inf)
    tokens = sih.sample(task, 6, rng=rng).tokens
    weights = circuit_weights(tokens, task, model.circuit)
    copied = model.trace(tokens).stream("3.1/token")
    decided = weights.max(dim=-1).values > 1 - 1e-9
    assert decided[:, model.circuit.first_row :].float().mean() > 0.9
    for b, i in decided.nonzero().tolist():
        if i >= model.circuit.first_row:
            lag = task.lags[int(weights[b, i].argmax())]
            assert copied[b, i].argmax() == tokens[b, i - lag + 1]
            assert copied[b, i].max() > 1 - 1e-8


def test_the_limit_is_hard_selection(task: Task, rng: torch.Generator) -> None:
    model = sih.construct(task, beta=math.inf, evidence="sum")
    tokens = sih.sample(task, 10, rng=rng).tokens
    limit = sih.selective_weights(tokens, task, beta=math.inf, evidence="sum")
    assert (third_layer(model, tokens) - limit)[:, task.max_lag - 1 :].abs().max() < 1e-5


def test_logit_readout_gives_a_row_of_p_where_one_token_is_copied(task: Task, rng: torch.Generator) -> None:
    hard = sih.construct(task, beta=math.inf, readout="logit")
    tokens = sih.sample(task, 4, rng=rng).tokens
    plain = sih.construct(task, beta=math.inf)
    sure = circuit_weights(tokens, task, hard.circuit).max(dim=-1).values > 1 - 1e-12
    sure[:, : hard.circuit.first_row] = False
    assert sure.any()
    assert (hard.predict(tokens) - plain.predict(tokens))[sure].abs().max() < 1e-8


def test_fewer_heads_say_what_they_leave_out() -> None:
    task = Task([[0.9, 0.1], [0.4, 0.6]], (1, 2, 3), 30)
    circuit = sih.construct(task, heads=2).circuit
    assert circuit.heads == 2
    assert sorted(circuit.colours) == [-1, 0, 1]  # one offset in three is left to no head


def test_densities_are_accounted_for(rng: torch.Generator) -> None:
    """A pattern whose heads take different numbers of offsets: still every transition counts alike in the long run."""
    lags = next(
        lags
        for lags in ALL
        if len({sih.least_heads(lags).colours.count(head) for head in range(sih.least_heads(lags).heads)}) > 1
    )
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, 2000)
    circuit = sih.construct(task.with_length(60), beta=10.0).circuit
    assert len(set(circuit.shares())) > 1
    tokens = sih.sample(task, 4, rng=rng).tokens
    even = sih.selective_weights(tokens, task, beta=10.0 * circuit.heads)
    assert (circuit_weights(tokens, task, circuit) - even)[:, -1].abs().max() < 0.02


def test_closed_form_of_a_long_sequence_is_quick(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    circuit = sih.construct(task).circuit
    weights = circuit_weights(torch.randint(5, (1, 100_000), generator=rng), task, circuit)
    assert weights.shape == (1, 100_000, 3)
    assert weights.isfinite().all()


@pytest.mark.parametrize(
    ("lags", "length", "options", "message"),
    [
        ((1, 2, 3), 40, {"target": "two-lags"}, r"for two lags, e.g. \(1, 3\); got \(1, 2, 3\)"),
        ((1, 3), 40, {"target": "two-lags", "heads": 2}, "leave those out"),
        ((1, 3), 40, {"third": "mask"}, "one residue each and no sink, not for the pattern"),
        ((1, 2), 40, {"third": "mask", "sink": True}, "not with a sink"),
        ((1, 2), 40, {"evidence": "sum", "sink": False}, "needs the sink"),
        ((1, 2), 40, {"heads": 0}, "at least 1; got 0"),
        ((1, 2), 40, {"beta": -1.0}, "beta is a positive"),
        ((1, 2), 40, {"temper": 0.0}, "temper is a positive"),
        ((1, 2), 40, {"lam": -3.0}, "lam is a positive"),
        ((1, 2), 40, {"lam": 10.0}, r"lam=10 is too small.*use lam >= 1\d\d"),
        ((1, 2), 40, {"symmetric": True}, "'bayes' only"),
        ((1, 2), 40, {"dtype": torch.float16}, "torch.float64 or torch.float32"),
        ((1, 2, 3, 8), 12, {}, "length 12 is too short"),
    ],
)
def test_bad_requests_get_one_clear_line(
    lags: tuple[int, ...], length: int, options: dict[str, Any], message: str, rng: torch.Generator
) -> None:
    task = Task(sih.random_transition_matrix(3, rng=rng), lags, length)
    with pytest.raises(ValueError, match=message) as caught:
        sih.construct(task, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("option", ["target='three'", "evidence='max'", "third='key'"])
def test_unknown_words_get_one_clear_line(option: str) -> None:
    """In a process without the tests' type checker, as a user would meet it."""
    code = f"import sih; sih.construct(sih.Task([[0.9, 0.1], [0.4, 0.6]], (1, 2), 30), {option})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert re.search(r"ValueError: (target|evidence|third) is '.*; got '", done.stderr.splitlines()[-1])


def test_a_tiny_entry_asks_for_stronger_masks() -> None:
    task = Task([[1 - 1e-200, 1e-200], [0.5, 0.5]], (1, 2), 20)
    with pytest.raises(ValueError, match="lam=200 is too small"):
        sih.construct(task, lam=200.0)
    assert sih.verify(sih.construct(task), task).ok
