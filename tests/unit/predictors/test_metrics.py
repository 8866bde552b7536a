from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from support import oracles
from support.strategies import tasks_with_tokens

import sih
from sih.base.errors import FieldError
from sih.predictors.metrics import mean_by_position
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
    assert (
        sih.kl_to_truth(exact.float(), batch, task) - sih.kl_to_truth(exact, batch, task)
    ).abs().max() < 1e-6


def test_mean_kl_leaves_out_the_first_max_lag_positions_and_the_last(task: Task) -> None:
    kl = torch.full((2, task.length), 7.0, dtype=torch.float64)
    kl[:, task.max_lag : task.length - 1] = torch.tensor([[0.0], [2.0]])
    assert sih.mean_kl(kl, task).tolist() == [0.0, 2.0]
    assert sih.mean_kl(kl.mean(dim=0), task).item() == 1.0
    assert mean_by_position(kl[1].tolist(), task.max_lag) == 2.0


def test_mean_kl_against_a_loop(task: Task, rng: torch.Generator) -> None:
    kl = torch.rand(3, task.length, generator=rng, dtype=torch.float64)
    for row, mean in zip(kl.tolist(), sih.mean_kl(kl, task).tolist(), strict=True):
        scored = [
            value
            for position, value in enumerate(row)
            if task.max_lag <= position <= task.length - 2
        ]
        assert mean == pytest.approx(sum(scored) / len(scored), rel=1e-12)
        assert mean_by_position(row, task.max_lag) == pytest.approx(mean, rel=1e-12)


def test_mean_kl_of_parents_begins_at_the_first_token_with_one() -> None:
    parents = torch.tensor(
        [[-1, -1, 1, 2, 3, 4], [-1, -1, 0, 1, 2, 3]]
    )  # tokens 0 and 1 follow none
    task = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], parents, length=5)
    assert sih.mean_kl(torch.tensor([9.0, 9.0, 1.0, 3.0, 9.0]), task).item() == 2.0


@pytest.mark.parametrize("time", [1, 7, 8])
def test_a_length_without_a_position_to_count_is_refused(time: int) -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 7), length=max(time, 8))
    with pytest.raises(
        FieldError,
        match=f"^kl must have at least 9 positions: .* first 7 and the last.*; got {time}$",
    ):
        sih.mean_kl(torch.zeros(2, time), task)
    with pytest.raises(FieldError, match=f"at least 9 positions: .*; got {time}$"):
        mean_by_position([0.0] * time, 7)
    assert sih.mean_kl(torch.arange(9.0), task).item() == 7.0


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
