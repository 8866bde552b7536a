"""A lag that switches: how it is drawn, and the forward filter against sums over every path of lags."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support import oracles_family as oracles

import sih
import sih.task.switching
from sih.base.errors import FieldError
from sih.task import Batch, MatrixTask
from sih.task.switching import log_filter

TASK = sih.SwitchingTask(
    [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4]], lags=(1, 2, 4), length=40, rate=0.15
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[sih.SwitchingTask, sih.Batch]:
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    states = draw(st.integers(2, 3))
    laws: list[Callable[..., torch.Tensor]] = [sih.random_transition_matrix, sih.random_sparse]
    random = draw(st.sampled_from(laws))  # with and without zeros
    lags = sorted(draw(st.sets(st.integers(1, 4), min_size=2, max_size=3)))
    rate = draw(st.sampled_from([0.0, 1e-12, 0.1, 0.5, 0.9, 1.0]))
    task = sih.SwitchingTask(
        random(states, rng=rng), lags, lags[-1] + draw(st.integers(1, 5)), rate
    )
    return task, sih.sample(task, 2, rng=rng)


@settings(max_examples=25)
@given(cases())
def test_the_filter_sums_over_all_paths_of_lags(case: tuple[sih.SwitchingTask, sih.Batch]) -> None:
    task, batch = case
    P, pi = task.P.tolist(), task.stationary.tolist()
    law, posterior = sih.bma(batch.tokens, task), sih.lag_posterior(batch.tokens, task)
    for b, row in enumerate(batch.tokens.tolist()):
        tracker = sih.LagTracker(task)
        for i, token in enumerate(row):
            expected, weights = oracles.switching_bma(
                row[: i + 1], P, pi, list(task.lags), task.rate
            )
            assert max(abs(law[b, i, s].item() - p) for s, p in enumerate(expected)) < 1e-13
            assert (
                max(abs(posterior[b, i, k].item() - float(w)) for k, w in enumerate(weights))
                < 1e-13
            )
            assert (tracker.update(token) - posterior[b, i]).abs().max() < 1e-12
            assert (tracker.predict() - law[b, i]).abs().max() < 1e-12


@settings(max_examples=6)
@given(cases())
def test_rate_0_is_the_paper_s_task(case: tuple[sih.SwitchingTask, sih.Batch]) -> None:
    task, _ = case
    steady = sih.Task(task.P, task.lags, task.length)
    tokens = sih.sample(steady, 3, rng=1).tokens
    still = sih.SwitchingTask(task.P, task.lags, task.length, rate=0.0)
    for predictor in (sih.bma, sih.lag_posterior, sih.maximum_likelihood, sih.selective, sih.ngram):
        assert torch.equal(predictor(tokens, still), predictor(tokens, steady))
    drawn = sih.sample(still, 20, rng=2).lags[:, task.max_lag :]
    assert (drawn == drawn[:, :1]).all()


@pytest.mark.parametrize("rate", [1e-9, 0.03, 0.6, 1.0])
def test_blocks_side_by_side_are_the_steps_one_by_one(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = sih.SwitchingTask(TASK.P, TASK.lags, 150, rate)
    tokens = sih.sample(task, 3, rng=0).tokens
    monkeypatch.setattr(sih.task.switching, "BLOCK", 1000)
    plain = sih.lag_log_likelihood(tokens, task)
    monkeypatch.setattr(sih.task.switching, "BLOCK", 4)
    assert (sih.lag_log_likelihood(tokens, task) - plain).abs().max() < 1e-10 * plain.abs().max()


def test_a_long_filter_by_plain_loops_and_without_underflow(rng: torch.Generator) -> None:
    task = sih.SwitchingTask(TASK.P, TASK.lags, 20_000, 0.001)
    batch = sih.sample(task, 1, rng=rng)
    log_p = task.laws(batch.tokens).log_probabilities()[0, 4:].tolist()
    log_f = sih.lag_log_likelihood(batch.tokens, task)[0, 4:] - math.log(3)
    assert log_f[-1].max() < -10_000  # far below the smallest float64
    now = [math.log(1 / 3)] * 3
    for i, p in enumerate(log_p):
        seen = [a + b for a, b in zip(now, p, strict=True)]
        top = max(seen)
        now = [
            top
            + math.log(
                sum(math.exp(x - top) * (0.999 if k == j else 0.0005) for j, x in enumerate(seen))
            )
            for k in range(3)
        ]
        if i % 997 == 0 or i == len(log_p) - 1:
            assert log_f[i].tolist() == pytest.approx(now, rel=1e-9)


def test_an_impossible_sequence_is_an_error_and_switching_makes_more_possible() -> None:
    P = [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]
    task = sih.SwitchingTask(P, (1, 2), 6, rate=0.1)
    switched = torch.tensor(
        [[0, 1, 2, 1, 1, 1]]
    )  # lag 1 makes 1 -> 2, then lag 2 makes 1 -> 1: neither makes both
    with pytest.raises(ValueError, match="sequence 0 is impossible under every lag"):
        sih.bma(switched, sih.Task(P, (1, 2), 6))
    assert sih.bma(switched, task).isfinite().all()
    dead = torch.tensor([[2, 2, 1, 0, 0, 0]])  # 2 -> 1 is impossible, whichever lag
    with pytest.raises(
        ValueError, match="sequence 0 is impossible under every lag of the task from position 2 on"
    ):
        sih.bma(dead, task)
    assert np.isneginf(log_filter(np.full((1, 300, 2), -math.inf), task.switches.numpy())).all()


@pytest.fixture(scope="module")
def big() -> sih.Batch:
    return sih.sample(TASK, 20_000, rng=7)


# Each z-score is of thousands of terms on a fixed seed; |z| < 5 fails by chance for less than 1 seed in 10,000.


def test_lags_are_a_markov_chain(big: sih.Batch) -> None:
    assert big.lags.shape == big.tokens.shape
    assert (big.lags[:, :4] == 0).all()
    assert torch.isin(big.lags[:, 4:], torch.tensor(TASK.lags)).all()
    for lag, other in itertools.permutations(TASK.lags, 2):
        before = big.lags[:, 4:-1] == lag
        total, p = int(before.sum()), 0.075
        moved = int((before & (big.lags[:, 5:] == other)).sum())
        assert abs(moved - total * p) < 5 * math.sqrt(total * p * (1 - p))
    assert abs(int((big.lags[:, 4] == 2).sum()) - 20_000 / 3) < 5 * math.sqrt(20_000 * 2 / 9)


def test_tokens_follow_the_lag_of_their_time(big: sih.Batch) -> None:
    rows = torch.arange(20_000)
    for i in (4, 5, 17, 39):
        parents = big.tokens[rows, i - big.lags[:, i]]
        for a, b in itertools.product(range(3), repeat=2):
            total, p = int((parents == a).sum()), TASK.P[a, b].item()
            moved = int(((parents == a) & (big.tokens[:, i] == b)).sum())
            assert abs(moved - total * p) < 5 * math.sqrt(total * p * (1 - p))


def test_the_truth_follows_each_switch(big: sih.Batch) -> None:
    batch = big[:20]
    law = sih.truth(batch, TASK)
    for b, (row, lags) in enumerate(zip(batch.tokens.tolist(), batch.lags.tolist(), strict=True)):
        for i in range(39):
            expected = TASK.P[row[i + 1 - lags[i + 1]]] if i + 1 >= 4 else TASK.stationary
            assert torch.equal(law[b, i], expected)
        chances = {lag: 0.85 if lag == lags[-1] else 0.075 for lag in TASK.lags}
        last = sum(
            (p * TASK.P[row[40 - lag]] for lag, p in chances.items()), torch.zeros(3).double()
        )
        assert (law[b, 39] - last).abs().max() < 1e-15
    assert torch.equal(law, sih.known_lag(batch.tokens, batch.lags, TASK))


def test_bayes_is_best_and_forgetting_follows(big: sih.Batch) -> None:
    """Exact filtering beats BMA of one lag; a tracker that forgets comes between them, one that does not is BMA."""
    batch = big[:100]
    steady = sih.Task(TASK.P, TASK.lags, TASK.length)
    laws = {"filter": sih.bma(batch.tokens, TASK), "one lag": sih.bma(batch.tokens, steady)}
    trackers = [sih.LagTracker(steady, forgetting=0.8) for _ in range(100)]
    found = torch.empty_like(laws["filter"])
    for i in range(40):
        for b, tracker in enumerate(trackers):
            tracker.update(batch.tokens[b, i])
            found[b, i] = tracker.predict()
    laws["forgetting"] = found
    kl = {name: sih.mean_kl(sih.kl_to_truth(law, batch, TASK), TASK) for name, law in laws.items()}
    for better, worse in (("filter", "forgetting"), ("forgetting", "one lag")):
        gap = kl[worse] - kl[better]
        assert gap.mean() > 3 * gap.std() / math.sqrt(100)
    accuracy = sih.lag_accuracy(sih.lag_posterior(big.tokens[:4000], TASK), big[:4000], TASK)
    assert accuracy.shape == (40,)
    assert accuracy[20:].min() > 0.4 > 1 / 3


def test_it_is_a_task_like_the_others() -> None:
    assert isinstance(TASK, MatrixTask)
    assert not isinstance(TASK, sih.Task)
    assert sih.SwitchingTask(**TASK.to_dict()) == TASK
    assert TASK.with_length(9).rate == TASK.rate
    one, two = (sih.sample(TASK, 30, rng=1, lag=lag) for lag in (1, 4))
    assert (one.lags[:, 4] == 1).all()
    assert (two.lags[:, 4] == 4).all()
    assert torch.equal(one.tokens[:, :4], two.tokens[:, :4])
    assert repr(TASK) == "SwitchingTask(num_states=3, lags=(1, 2, 4), length=40, rate=0.15)"


@settings(max_examples=3)
@given(st.permutations(range(3)), st.integers(1, 40))
def test_what_the_filter_does_not_depend_on(names: list[int], end: int) -> None:
    """Names of states, and tokens yet to come."""
    tokens = sih.sample(TASK, 3, rng=end).tokens
    new, P = torch.tensor(names), torch.empty_like(TASK.P)
    P[new[:, None], new[None, :]] = TASK.P
    law = sih.bma(tokens, TASK)
    renamed = sih.bma(new[tokens], sih.SwitchingTask(P, TASK.lags, TASK.length, TASK.rate))
    assert (law - renamed[..., new]).abs().max() < 1e-12
    assert (law[:, :end] - sih.bma(tokens[:, :end], TASK)).abs().max() < 1e-13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sih.SwitchingTask(TASK.P, (1, 2), 8, rate=1.5),
            "rate is the chance that the lag switches",
        ),
        (
            lambda: sih.SwitchingTask(TASK.P, (1, 2), 8, rate=-0.1),
            "rate is the chance that the lag switches",
        ),
        (
            lambda: sih.SwitchingTask(TASK.P, (2,), 8, rate=0.1),
            "needs two lags or more to switch between",
        ),
        (
            lambda: sih.truth(sih.Batch(torch.zeros(2, 8).long(), torch.ones(2).long()), TASK),
            "the lag of each token",
        ),
    ],
)
def test_bad_input_is_one_clear_line(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_batch_that_ends_before_any_lag_has_no_truth() -> None:
    task = sih.SwitchingTask([[0.9, 0.1], [0.5, 0.5]], (1, 3), 12, 0.1)
    batch = sih.sample(task, 2, rng=0)
    with pytest.raises(FieldError, match="the lag of sequence 0 is 0"):
        sih.truth(Batch(batch.tokens[:, :3], batch.lags[:, :3]), task)
    assert sih.truth(Batch(batch.tokens[:, :4], batch.lags[:, :4]), task).shape == (2, 4, 2)
