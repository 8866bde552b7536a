from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import tasks_with_tokens

import sih
from sih.task import Task


@pytest.mark.parametrize("zeros", [False, True])
@given(data=st.data())
def test_stream_equals_batch(zeros: bool, data: st.DataObject) -> None:
    task, batch = data.draw(tasks_with_tokens(zeros=zeros))
    posterior, bma = sih.lag_posterior(batch.tokens, task), sih.bma(batch.tokens, task)
    for b, row in enumerate(batch.tokens.tolist()):
        tracker = sih.LagTracker(task)
        assert torch.equal(tracker.predict(), task.stationary)
        for i, token in enumerate(row):
            assert (tracker.update(token) - posterior[b, i]).abs().max() < 1e-12
            assert (tracker.predict() - bma[b, i]).abs().max() < 1e-12


def test_stream_equals_batch_on_a_long_close_race(rng: torch.Generator) -> None:
    """Rows nearly equal: the posterior stays open for thousands of tokens, where rounding would show."""
    P = 0.99 * torch.full((4, 4), 0.25, dtype=torch.float64) + 0.01 * sih.random_transition_matrix(
        4, rng=rng
    )
    task = Task(P, (1, 2, 5), 20_000)
    tokens = sih.sample(task, 1, rng=rng).tokens
    tracker = sih.LagTracker(task)
    found = torch.stack([tracker.update(token) for token in tokens[0].tolist()])
    assert (found - sih.lag_posterior(tokens, task)[0]).abs().max() < 1e-11
    assert found[-1].max() < 0.999


def test_a_refused_token_leaves_no_trace(task: Task) -> None:
    sparse = Task([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]], (1, 2), 6)
    tracker = sih.LagTracker(sparse)
    for token in (0, 1, 2):
        tracker.update(token)
    with pytest.raises(ValueError, match="token 1 at position 3 is impossible"):
        tracker.update(1)
    assert tracker.update(2).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="states 0 to 4; got 7 at position 0"):
        sih.LagTracker(task).update(7)
