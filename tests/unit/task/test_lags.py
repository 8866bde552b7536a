from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from support.strategies import tasks

from sih.base.errors import FieldError
from sih.task import Task

P2 = [[0.9, 0.1], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("lags", "length", "prior", "message"),
    [
        ((), 10, None, "lags must be distinct"),
        ((2, 1), 10, None, r"increasing.*got \(2, 1\)"),
        ((1, 1), 10, None, "distinct"),
        ((0, 1), 10, None, "positive"),
        ((1, 3), 3, None, "above the largest lag, 3; got 3"),
        ((1, 3), 10, (0.5, 0.6), "summing to 1"),
        ((1, 3), 10, (1.0, 0.0), "leave out one"),
        ((1, 3), 10, (1.0,), "each of the 2 lags"),
    ],
)
def test_a_task_checks_itself(lags: object, length: object, prior: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Task(P2, lags, length, prior)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("lags", "length"), [("(1.5,)", 10), ("3", 10), ("(1, 'a')", 10), ("(1, 3)", 10.5)]
)
def test_wrong_types_get_the_same_kind_of_line(lags: str, length: object) -> None:
    """In a process without the tests' type checker, as a user would meet it."""
    code = f"import sih; sih.Task({P2}, {lags}, {length})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert re.search(r"FieldError: (lags|length) must be .*; got ", done.stderr.splitlines()[-1])


def test_a_task_is_what_it_was_given() -> None:
    task = Task(P2, lags=[2, 5], length=np.int64(9))
    assert (task.lags, task.min_lag, task.max_lag, task.length, task.num_states) == (
        (2, 5),
        2,
        5,
        9,
        2,
    )
    assert torch.allclose(task.stationary, torch.tensor([5 / 6, 1 / 6], dtype=torch.float64))
    assert task.lag_prior.tolist() == [0.5, 0.5]
    again = Task(**task.to_dict())
    assert again.to_dict() == task.to_dict()
    assert task.with_length(100).length == 100
    with pytest.raises(AttributeError):
        task.length = 3  # type: ignore[misc]  # frozen


def test_errors_know_their_field() -> None:
    for values, field in (
        ({"lags": (2, 1)}, "lags"),
        ({"length": 2}, "length"),
        ({"lag_prior": (1.0,)}, "lag_prior"),
    ):
        with pytest.raises(FieldError) as caught:
            Task(**{"P": P2, "lags": (1, 3), "length": 8, **values})  # type: ignore[arg-type]  # wrong on purpose
        assert caught.value.field == field


@given(tasks())
def test_equal_tasks_compare_equal(task: Task) -> None:
    again = Task(**task.to_dict())
    assert again == task == task.with_length(task.length)
    assert hash(again) == hash(task)


@pytest.mark.parametrize(
    "change",
    [
        {"P": [[0.8, 0.2], [0.5, 0.5]]},
        {"P": [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]]},
        {"lags": (1, 2)},
        {"lags": (1, 2, 3), "lag_prior": None},
        {"length": 10},
        {"lag_prior": (0.4, 0.6)},
    ],
)
def test_other_tasks_do_not(change: dict[str, object]) -> None:
    parts = {"P": P2, "lags": (1, 3), "length": 9, "lag_prior": (0.5, 0.5)}
    task, other = Task(**parts), Task(**{**parts, **change})  # type: ignore[arg-type]  # any of them
    assert task == Task(**parts)  # type: ignore[arg-type]
    assert task != other
    assert task.same_chains(other) == ("length" in change)
    assert task != "a task"


@given(tasks())
def test_parents_are_the_tokens_that_lags_copy(task: Task) -> None:
    parents = task.parents(task.length + 1).tolist()
    assert task.hypotheses == task.lags
    assert torch.equal(task.prior, task.lag_prior)
    for row, lag in zip(parents, task.lags, strict=True):
        assert row == [i - lag if i >= task.max_lag else -1 for i in range(task.length + 1)]
