from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import tasks_with_tokens

import sih
from sih.predictors.evidence import log_probabilities, normalised_probabilities
from sih.task import Task


@given(tasks_with_tokens(), st.sampled_from([0.5, 1.0, 2.0]))
def test_probabilities_by_plain_loops(drawn: tuple[Task, sih.Batch], temper: float) -> None:
    task, batch = drawn
    log_p = log_probabilities(batch.tokens, task)
    p_norm = normalised_probabilities(batch.tokens, task, temper=temper)
    total = sih.lag_log_likelihood(batch.tokens, task)
    for b, row in enumerate(batch.tokens.tolist()):
        sums = [0.0] * len(task.lags)
        for i in range(task.length):
            if i < task.max_lag:
                assert (
                    log_p[b, i].tolist()
                    == p_norm[b, i].tolist()
                    == total[b, i].tolist()
                    == [0.0] * len(task.lags)
                )
                continue
            p = [task.P[row[i - lag], row[i]].item() for lag in task.lags]
            sums = [x + math.log(y) for x, y in zip(sums, p, strict=True)]
            powers = [x**temper for x in p]
            assert log_p[b, i].tolist() == pytest.approx([math.log(x) for x in p], rel=1e-13)
            assert p_norm[b, i].tolist() == pytest.approx(
                [x / sum(powers) for x in powers], rel=1e-12
            )
            assert total[b, i].tolist() == pytest.approx(sums, rel=1e-12)


def test_another_table_than_log_p() -> None:
    task = Task([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], (1, 2), 6)
    floor = torch.where(task.P > 0, task.P.log(), -1e4)
    tokens = torch.tensor([[0, 1, 2, 2, 0, 0]])  # lag 2 would need 0 -> 2
    assert log_probabilities(tokens, task)[0, 2].tolist() == [math.log(0.5), -math.inf]
    assert log_probabilities(tokens, task, floor)[0, 2].tolist() == [math.log(0.5), -1e4]
    assert normalised_probabilities(tokens, task, log_P=floor)[0, 2].tolist() == [1.0, 0.0]


def test_gradients_pass_to_the_weights(task: Task, rng: torch.Generator) -> None:
    tokens = sih.sample(task, 2, rng=rng).tokens
    weights = torch.full((2, task.length, 3), 1 / 3, dtype=torch.float64, requires_grad=True)
    sih.mixture(weights, tokens, task)[:, :, 0].sum().backward()
    assert weights.grad is not None
    for i in range(task.length):
        for j, lag in enumerate(task.lags):
            expected = (
                task.P[tokens[:, i + 1 - lag], 0]
                if i + 1 >= task.max_lag
                else torch.zeros(2).double()
            )
            assert torch.equal(weights.grad[:, i, j], expected)


def test_impossible_lags_get_weight_zero_and_impossible_sequences_an_error() -> None:
    task = Task([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], (1, 2), 6)
    tokens = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 2, 2]])
    posterior = sih.lag_posterior(tokens, task)
    assert posterior[0].isfinite().all()
    assert posterior[1, 2].tolist() == [0.5, 0.5]
    only_first = torch.tensor([[0, 1, 2, 2, 0, 0]])  # lag 2 would need 0 -> 2
    assert sih.lag_posterior(only_first, task)[0, 2:].tolist() == [[1.0, 0.0]] * 4
    impossible = torch.tensor(
        [[0, 0, 1, 1, 2, 2], [0, 1, 2, 1, 1, 1]]
    )  # 2 -> 1 ends lag 1, 0 -> 2 ended lag 2
    for predictor in (sih.bma, sih.maximum_likelihood, sih.selective, sih.lag_posterior):
        with pytest.raises(
            ValueError,
            match="sequence 1 is impossible under every lag of the task from position 3 on",
        ):
            predictor(impossible, task)


def test_no_underflow_at_length_100_000(rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(5, rng=rng)
    pieces = sih.sample(
        Task(P, (2,), 1000), 100, rng=rng
    ).tokens  # joined end to end: lag 2 but for 100 seams
    task = Task(P, (1, 2, 3), 100_000)
    tokens = pieces.reshape(1, -1)
    assert (
        sih.lag_log_likelihood(tokens, task)[0, -1].max() < -10_000
    )  # far below the smallest float64
    for law in (sih.bma(tokens, task), sih.selective(tokens, task, evidence="sum")):
        assert (law[0, -1] - P[tokens[0, -2]]).abs().max() < 1e-12
