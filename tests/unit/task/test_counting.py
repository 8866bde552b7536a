"""Counting under an unknown matrix, against sums that enumerate it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support import oracles_family as oracles
from torch import Tensor

import sih
import sih.task.counting
from sih.predictors.predictors import plug_in_weights
from sih.task.counting import CountedRows, CountLaws, transition_counts

ALPHAS = {0.5: Fraction(1, 2), 1.0: Fraction(1), 2.0: Fraction(2)}


@st.composite
def cases(draw: st.DrawFn) -> tuple[sih.FreshTask, Tensor]:
    """A task with an unknown matrix, and any tokens of its states, shorter and longer than its lags."""
    states = draw(st.integers(2, 4))
    lags = sorted(draw(st.sets(st.integers(1, 5), min_size=1, max_size=3)))
    weights = draw(st.lists(st.integers(1, 9), min_size=len(lags), max_size=len(lags)))
    prior = [w / sum(weights) for w in weights]
    task = sih.FreshTask(states, lags, lags[-1] + 1, draw(st.sampled_from(sorted(ALPHAS))), prior)
    rng = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    return task, torch.randint(
        states, (draw(st.integers(1, 3)), draw(st.integers(1, 14))), generator=rng
    )


def _close(found: Tensor, expected: list[float], tolerance: float = 1e-13) -> bool:
    return bool((found - torch.tensor(expected, dtype=torch.float64)).abs().max() < tolerance)


@given(cases())
def test_counts_by_plain_loops(case: tuple[sih.FreshTask, Tensor]) -> None:
    task, tokens = case
    if tokens.shape[1] < task.max_lag:
        return
    for lag, counts in zip(
        task.lags, transition_counts(tokens, task.lags, task.num_states), strict=True
    ):
        for b, row in enumerate(tokens.tolist()):
            for j, i in enumerate(
                range(task.max_lag, len(row) + 1)
            ):  # before token i, or after all of them
                made = oracles.transitions(row[:i], lag, task.max_lag)
                assert counts[b, j].tolist() == [
                    made[row[i - lag], s] for s in range(task.num_states)
                ]


@given(cases())
def test_bayes_against_the_enumerated_evidence(case: tuple[sih.FreshTask, Tensor]) -> None:
    task, tokens = case
    alpha, lags, prior = ALPHAS[task.concentration], list(task.lags), task.lag_prior.tolist()
    law, ml, posterior = (
        sih.bma(tokens, task),
        sih.maximum_likelihood(tokens, task),
        sih.lag_posterior(tokens, task),
    )
    log_likelihood = sih.lag_log_likelihood(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        for i in range(len(row)):
            seen = row[: i + 1]
            assert _close(law[b, i], oracles.fresh_bma(seen, task.num_states, lags, prior, alpha))
            assert _close(
                posterior[b, i], oracles.fresh_posterior(seen, task.num_states, lags, prior, alpha)
            )
            exact = [
                oracles.marginal_likelihood(seen, task.num_states, k, task.max_lag, alpha)
                for k in lags
            ]
            common = Fraction(1, task.num_states) ** min(
                task.max_lag, i + 1
            )  # left out, as with a known matrix
            assert _close(log_likelihood[b, i].exp(), [float(p / common) for p in exact])
            second, first = sorted(exact)[-2:] if len(exact) > 1 else (Fraction(0), Fraction(1))
            if (
                first == second or float((first - second) / first) > 1e-9
            ):  # else rounding may choose
                assert _close(ml[b, i], oracles.fresh_ml(seen, task.num_states, lags, alpha))


@pytest.mark.parametrize("alpha", sorted(ALPHAS))
def test_bayes_against_quadrature_over_the_matrix(alpha: float) -> None:
    """Two states: both rows integrated out on a grid of Gauss's nodes, which is exact for these likelihoods."""
    task = sih.FreshTask(2, (1, 2), 7, alpha)
    tokens = sih.sample(task, 4, rng=3).tokens
    law, posterior = sih.bma(tokens, task), sih.lag_posterior(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        for i in range(1, 7):
            now = [oracles.quadrature_likelihood(row[: i + 1], lag, 2, alpha) for lag in (1, 2)]
            assert _close(posterior[b, i], [p / sum(now) for p in now], 1e-12)
            then = [
                [oracles.quadrature_likelihood([*row[: i + 1], s], k, 2, alpha) for k in (1, 2)]
                for s in (0, 1)
            ]
            assert _close(law[b, i], [sum(p) / sum(now) for p in then], 1e-12)


@pytest.mark.parametrize("lags", [(1,), (1, 2), (2, 3)])
def test_the_evidence_of_all_sequences_sums_to_one(lags: tuple[int, ...]) -> None:
    task = sih.FreshTask(2, lags, 7, 0.7)
    every = torch.tensor(list(itertools.product((0, 1), repeat=7)))
    likelihood = sih.lag_log_likelihood(every, task)[:, -1].exp() / 2**task.max_lag
    assert (likelihood.sum(dim=0) - 1).abs().max() < 1e-12


@given(cases(), st.sampled_from([0.25, 1.0, 3.0]))
def test_plug_in_against_the_definition(case: tuple[sih.FreshTask, Tensor], c: float) -> None:
    task, tokens = case
    law = sih.plug_in(tokens, task, pseudo_count=c)
    weights = plug_in_weights(tokens, task, pseudo_count=c)
    for b, row in enumerate(tokens.tolist()):
        for i in range(len(row)):
            expected = oracles.plug_in(
                row[: i + 1], task.num_states, list(task.lags), task.lag_prior.tolist(), c
            )
            assert _close(weights[b, i], expected[0], 1e-12)
            assert _close(law[b, i], expected[1], 1e-12)


@given(cases())
def test_one_token_at_a_time(case: tuple[sih.FreshTask, Tensor]) -> None:
    task, tokens = case
    posterior, law = sih.lag_posterior(tokens, task), sih.bma(tokens, task)
    for b, row in enumerate(tokens.tolist()):
        tracker = sih.LagTracker(task)
        for i, token in enumerate(row):
            assert (tracker.update(token) - posterior[b, i]).abs().max() < 1e-12
            assert (tracker.predict() - law[b, i]).abs().max() < 1e-12


def test_rows_are_learnt_apart_for_each_hypothesis() -> None:
    rows = CountedRows(2, 3, 0.5)
    rows.learn(1, 0, 2)
    assert rows.law(0, 0) == [1 / 3] * 3
    assert rows.law(1, 0) == [0.2, 0.2, 0.6]
    assert rows.probability(1, 0, 2) == 0.6


def test_counts_in_float64_where_float32_would_round(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = sih.sample(sih.FreshTask(3, (1, 2), 20), 4, rng=0).tokens
    narrow = CountLaws(tokens, (1, 2), 3, 0.3)
    assert narrow.counts[0].dtype == torch.float32
    monkeypatch.setattr(sih.task.counting, "EXACT", 0)
    wide = CountLaws(tokens, (1, 2), 3, 0.3)
    assert wide.counts[0].dtype == torch.float64
    assert torch.equal(narrow.log_probabilities(), wide.log_probabilities())
    weights = torch.rand((4, 20, 2), dtype=torch.float64)
    assert torch.equal(narrow.mixture(weights), wide.mixture(weights))


def test_many_states() -> None:
    """More states than 16 bits number: sorted all the same."""
    tokens = torch.tensor([[70_000, 1, 70_000, 1, 70_000]])
    (counts,) = transition_counts(tokens, (1,), 70_001)
    assert counts[0, -1, 1] == 2
    assert counts[0, -1].sum() == 2


def test_no_underflow_at_length_100_000(rng: torch.Generator) -> None:
    P = sih.random_transition_matrix(3, rng=rng)
    tokens = sih.sample(sih.Task(P, (2,), 100_000), 1, rng=rng).tokens
    task = sih.FreshTask(3, (1, 2, 3), 100_000)
    assert (
        sih.lag_log_likelihood(tokens, task)[0, -1].max() < -10_000
    )  # far below the smallest float64
    assert (
        sih.bma(tokens, task)[0, -1] - P[tokens[0, -2]]
    ).abs().max() < 0.02  # 5 errors of a row's estimate


def test_gradients_pass_to_the_weights() -> None:
    task = sih.FreshTask(3, (1, 2), 8)
    tokens = sih.sample(task, 2, rng=0).tokens
    weights = sih.lag_posterior(tokens, task).requires_grad_()
    sih.mixture(weights, tokens, task)[:, :, 0].sum().backward()
    one = torch.zeros_like(weights)
    one[..., 1] = 1.0
    assert weights.grad is not None
    assert (weights.grad[..., 1] - sih.mixture(one, tokens, task)[..., 0])[
        :, 1:
    ].abs().max() < 1e-14
    assert (weights.grad[:, 0] == 0).all()
