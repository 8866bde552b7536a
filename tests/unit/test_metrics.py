from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from support import oracles
from support.strategies import tasks_with_tokens

import sih
from sih.task import Task


@given(tasks_with_tokens())
def test_kl_against_the_definition(drawn: tuple[Task, sih.Batch]) -> None:
    task, batch = drawn
    prediction = sih.bma(batch.tokens, task)
    kl = sih.kl_to_truth(prediction, batch, task)
    truth = sih.known_lag(batch.tokens, batch.lags, task)
    for b in range(len(batch.lags)):
        for i in range(task.length):
            assert kl[b, i].item() == pytest.approx(
                oracles.kl(truth[b, i].tolist(), prediction[b, i].tolist()), abs=1e-13
            )
    assert sih.kl_to_truth(truth, batch, task).abs().max() == 0
    assert kl.min() > -1e-14


def test_kl_is_infinite_where_the_possible_was_ruled_out(task: Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 2, rng=rng)
    prediction = torch.zeros(2, task.length, 5, dtype=torch.float64)
    prediction[..., 0] = 1.0
    assert sih.kl_to_truth(prediction, batch, task)[0, 0] == math.inf


def test_float32_predictions_are_welcome(task: Task, rng: torch.Generator) -> None:
    batch = sih.sample(task, 2, rng=rng)
    exact = sih.bma(batch.tokens, task)
    assert (sih.kl_to_truth(exact.float(), batch, task) - sih.kl_to_truth(exact, batch, task)).abs().max() < 1e-6


def test_mean_kl_leaves_out_the_first_max_lag_positions(task: Task) -> None:
    kl = torch.zeros(2, task.length, dtype=torch.float64)
    kl[:, : task.max_lag] = 7.0
    kl[1, task.max_lag :] = 2.0
    assert sih.mean_kl(kl, task).tolist() == [0.0, 2.0]


def test_lag_accuracy_counts_right_choices(task: Task) -> None:
    batch = sih.Batch(torch.zeros(4, 3, dtype=torch.int64), torch.tensor([1, 2, 3, 3]))
    weights = torch.zeros(4, 3, 3, dtype=torch.float64)
    weights[:, 0, 0] = 1.0  # always lag 1
    weights[:, 1, 2] = 1.0  # always lag 3
    weights[torch.arange(4), 2, batch.lags - 1] = 1.0  # always right
    assert sih.lag_accuracy(weights, batch, task).tolist() == [0.25, 0.5, 1.0]


def test_accuracy_of_the_posterior_grows_to_one(rng: torch.Generator) -> None:
    task = Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 128)
    batch = sih.sample(task, 400, rng=rng)
    accuracy = sih.lag_accuracy(sih.lag_posterior(batch.tokens, task), batch, task)
    assert accuracy[2] < 0.5  # nothing seen yet
    assert accuracy[-1] > 0.99
