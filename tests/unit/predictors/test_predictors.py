from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import oracles
from support.strategies import tasks_with_tokens
from torch import Tensor

import sih
from sih.predictors.predictors import PREDICTORS as TABLE
from sih.task import Task

PREDICTORS: dict[str, Callable[[Tensor, Task], Tensor]] = {
    "bma": sih.bma,
    "maximum_likelihood": sih.maximum_likelihood,
    "selective": sih.selective,
    "selective sum": lambda tokens, task: sih.selective(
        tokens, task, beta=3.0, evidence="sum", temper=0.5
    ),
    "selective limit": lambda tokens, task: sih.selective(tokens, task, beta=math.inf),
    "ngram": sih.ngram,
    "stationary_law": sih.stationary_law,
}


def _close(found: Tensor, expected: list[float], tolerance: float = 1e-12) -> bool:
    return bool((found - torch.tensor(expected, dtype=torch.float64)).abs().max() < tolerance)


@pytest.mark.parametrize("zeros", [False, True])
@given(data=st.data())
def test_bayes_and_likelihood_against_enumerated_definitions(
    zeros: bool, data: st.DataObject
) -> None:
    task, batch = data.draw(tasks_with_tokens(zeros=zeros))
    P, pi, lags, prior = (
        task.P.tolist(),
        task.stationary.tolist(),
        list(task.lags),
        task.lag_prior.tolist(),
    )
    bma, ml = sih.bma(batch.tokens, task), sih.maximum_likelihood(batch.tokens, task)
    posterior = sih.lag_posterior(batch.tokens, task)
    for b, row in enumerate(batch.tokens.tolist()):
        for i in range(task.length):
            seen = row[: i + 1]
            assert _close(bma[b, i], oracles.bma(seen, P, pi, lags, prior))
            assert _close(posterior[b, i], oracles.posterior(seen, P, pi, lags, prior))
            exact = [oracles.likelihood(seen, P, pi, k, max(lags)) for k in lags]
            second, first = sorted(exact)[-2:] if len(exact) > 1 else (0, 1)
            if (
                first == second or float((first - second) / first) > 1e-9
            ):  # else rounding may choose
                assert _close(ml[b, i], oracles.maximum_likelihood(seen, P, pi, lags))


@given(
    tasks_with_tokens(),
    st.sampled_from([0.0, 1.0, 100.0, math.inf]),
    st.sampled_from(["mean", "sum"]),
    st.sampled_from([0.1, 1.0, 2.0]),
)
def test_selective_against_the_definition(
    drawn: tuple[Task, sih.Batch], beta: float, evidence: str, temper: float
) -> None:
    task, batch = drawn
    P, pi, lags = task.P.tolist(), task.stationary.tolist(), list(task.lags)
    weights = sih.selective_weights(batch.tokens, task, beta=beta, evidence=evidence, temper=temper)  # type: ignore[arg-type]
    law = sih.selective(batch.tokens, task, beta=beta, evidence=evidence, temper=temper)  # type: ignore[arg-type]
    for b, row in enumerate(batch.tokens.tolist()):
        for i in range(task.length):
            if beta == math.inf and not _limit_is_clear(row[: i + 1], P, lags, evidence, temper):
                continue
            expected = oracles.selective_weights(row[: i + 1], P, lags, beta, evidence, temper)
            assert _close(weights[b, i], expected, 1e-10)
            assert _close(
                law[b, i], oracles.copy_mixture(expected, row[: i + 1], P, pi, lags), 1e-10
            )


def _limit_is_clear(
    seen: list[int], P: list[list[float]], lags: list[int], evidence: str, temper: float
) -> bool:
    """Whether the largest evidence leads by more than rounding, or is shared to the last bit by equal terms."""
    weights = oracles.selective_weights(seen, P, lags, 1.0, evidence, temper)
    return all(w == max(weights) or w < max(weights) * (1 - 1e-9) for w in weights)


@given(tasks_with_tokens(), st.sampled_from([0.0, 0.5, 1.0]))
def test_ngram_against_counting(drawn: tuple[Task, sih.Batch], pseudo_count: float) -> None:
    task, batch = drawn
    law = sih.ngram(batch.tokens, task, pseudo_count=pseudo_count)
    for b, row in enumerate(batch.tokens.tolist()):
        for i in range(task.length):
            expected = oracles.ngram(
                row[: i + 1], task.num_states, task.stationary.tolist(), task.max_lag, pseudo_count
            )
            assert _close(law[b, i], expected)


def test_ngram_contexts_never_overflow(rng: torch.Generator) -> None:
    """50 states, contexts of 40 tokens: 50**40 does not fit any integer, and a repeated context is still found."""
    task = Task(sih.random_transition_matrix(50, rng=rng), (40,), 100)
    tokens = sih.sample(task, 1, rng=rng).tokens
    tokens[:, 50:90] = tokens[:, :40]  # the context before token 40 comes again before token 90
    law = sih.ngram(tokens, task, pseudo_count=0.0)
    assert law[0, 89].argmax() == tokens[0, 40]
    assert law[0, 89].max() == 1


@given(tasks_with_tokens())
def test_known_lag_copies_the_row_of_its_parent(drawn: tuple[Task, sih.Batch]) -> None:
    task, batch = drawn
    law = sih.known_lag(batch.tokens, batch.lags, task)
    for b, (row, lag) in enumerate(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True)):
        for i in range(task.length):
            expected = task.P[row[i + 1 - lag]] if i + 1 >= task.max_lag else task.stationary
            assert torch.equal(law[b, i], expected)


@pytest.mark.parametrize("name", PREDICTORS)
@given(data=st.data())
def test_laws_sum_to_one_and_start_stationary(name: str, data: st.DataObject) -> None:
    task, batch = data.draw(tasks_with_tokens())
    law = PREDICTORS[name](batch.tokens, task)
    assert law.dtype == torch.float64
    assert (law >= 0).all()
    assert (law.sum(dim=-1) - 1).abs().max() < 1e-12
    assert torch.equal(
        law[:, : task.max_lag - 1], task.stationary.expand_as(law[:, : task.max_lag - 1])
    )


@pytest.mark.parametrize("name", PREDICTORS)
def test_tokens_of_any_integer_type_and_of_any_length(
    name: str, task: Task, rng: torch.Generator
) -> None:
    tokens = sih.sample(task, 2, rng=rng).tokens
    assert torch.equal(
        PREDICTORS[name](tokens.to(torch.int32), task), PREDICTORS[name](tokens, task)
    )
    assert torch.equal(
        PREDICTORS[name](tokens.to(torch.int8), task), PREDICTORS[name](tokens, task)
    )
    for length in (0, 1, 2, 3, 4):
        assert PREDICTORS[name](tokens[:, :length], task).shape == (2, length, 5)


@pytest.mark.parametrize("name", PREDICTORS)
@given(data=st.data())
def test_changing_a_token_changes_nothing_before_it(name: str, data: st.DataObject) -> None:
    task, batch = data.draw(tasks_with_tokens())
    j = data.draw(st.integers(0, task.length - 1))
    changed = batch.tokens.clone()
    changed[:, j] = (changed[:, j] + 1) % task.num_states
    before, after = PREDICTORS[name](batch.tokens, task), PREDICTORS[name](changed, task)
    assert (before[:, :j] - after[:, :j]).abs().max() < 1e-12 if j else True


@pytest.mark.parametrize("name", PREDICTORS)
@given(data=st.data())
def test_a_prefix_has_the_same_answers(name: str, data: st.DataObject) -> None:
    task, batch = data.draw(tasks_with_tokens())
    length = data.draw(st.integers(1, task.length))
    whole, part = (
        PREDICTORS[name](batch.tokens, task),
        PREDICTORS[name](batch.tokens[:, :length], task),
    )
    assert (whole[:, :length] - part).abs().max() < 1e-12


@pytest.mark.parametrize("name", PREDICTORS)
@given(data=st.data())
def test_relabelling_states_permutes_predictions(name: str, data: st.DataObject) -> None:
    task, batch = data.draw(tasks_with_tokens())
    new = torch.tensor(data.draw(st.permutations(range(task.num_states))))
    P = torch.empty_like(task.P)
    P[new[:, None], new[None, :]] = task.P
    relabelled = Task(P, task.lags, task.length, task.lag_prior)
    law, moved = (
        PREDICTORS[name](batch.tokens, task),
        PREDICTORS[name](new[batch.tokens], relabelled),
    )
    assert (law - moved[..., new]).abs().max() < 1e-9


def test_ties_go_to_the_smallest_lag_and_the_limit_shares_them() -> None:
    task = Task([[0.9, 0.1], [0.5, 0.5]], (1, 2), 4)
    tokens = torch.tensor([[0, 0, 0, 1]])  # both lags have made the same transitions
    assert torch.equal(
        sih.maximum_likelihood(tokens, task)[0, 3], task.P[1]
    )  # lag 1 copies token 3
    assert sih.selective_weights(tokens, task, beta=math.inf)[0, 3].tolist() == [0.5, 0.5]


def test_the_same_transitions_in_another_order_are_a_tie(rng: torch.Generator) -> None:
    """Lag 1 makes 11 11 10 01 and lag 2 makes 01 11 10 11: equal in exact arithmetic, not in rounded sums."""
    for _ in range(50):
        task = Task(sih.random_transition_matrix(2, rng=rng), (1, 2), 6)
        tokens = torch.tensor([[0, 1, 1, 1, 0, 1]])
        assert torch.equal(sih.maximum_likelihood(tokens, task)[0, 5], task.P[1])


def test_the_table_has_every_predictor_with_weights_that_fit(
    task: Task, rng: torch.Generator
) -> None:
    tokens = sih.sample(task, 2, rng=rng).tokens
    choices = {"beta": 7.0, "evidence": "sum", "temper": 0.5}
    assert [name for name, one in TABLE.items() if one.yardstick] == ["bma", "ml"]
    for one in TABLE.values():
        options = {name: choices[name] for name in one.options}
        weights, law = one.weights(tokens, task, **options), one.law(tokens, task, **options)
        assert weights.shape == (2, task.length, 3)
        assert law.shape == (2, task.length, 5)
    assert torch.equal(
        TABLE["selective-sum"].law(tokens, task),
        sih.selective(tokens, task, beta=3.0, evidence="sum"),
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t, k: sih.bma(t + 5, k), "states 0 to 4; sequence 0 has [5-9] at position 0"),
        (lambda t, k: sih.bma(t - 9, k), "states 0 to 4; sequence 0 has -"),
        (lambda t, k: sih.selective(t, k, beta=-1.0), "beta is an inverse temperature"),
        (lambda t, k: sih.selective(t, k, beta=math.nan), "beta is an inverse temperature"),
        (lambda t, k: sih.selective(t, k, temper=0.0), "temper is a positive exponent"),
        (lambda t, k: sih.ngram(t, k, pseudo_count=-1.0), "pseudo_count"),
        (
            lambda t, k: sih.known_lag(t, torch.tensor([1, 9]), k),
            r"the lag of sequence 1 is 9, but.*\(1, 2, 3\)",
        ),
    ],
)
def test_bad_input_is_one_clear_line(
    call: Callable[[Tensor, Task], Tensor], message: str, task: Task, rng: torch.Generator
) -> None:
    tokens = sih.sample(task, 2, rng=rng).tokens
    with pytest.raises(ValueError, match=message) as caught:
        call(tokens, task)
    assert "\n" not in str(caught.value)
