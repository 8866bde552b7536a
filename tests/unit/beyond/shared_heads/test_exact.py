"""Brackets of the number of exact heads, and that what they promise is built."""

from __future__ import annotations

import itertools

import pytest
import torch

import sih
from sih.beyond.shared_heads.brackets import kept_brackets, normal_form
from sih.heads.mixing import exact_profile
from sih.heads.profiles import Profile


@pytest.mark.parametrize("count", range(2, 9))
def test_intervals_and_progressions_are_settled(count: int) -> None:
    for step in (1, 3):
        answer = sih.exact_heads(tuple(range(2, 2 + step * count, step)))
        assert (answer.lower, answer.upper) == (count - 1, count - 1)
        assert answer.exact
        assert "progression" in answer.upper_by


def test_other_sets() -> None:
    one = sih.exact_heads((4,))
    assert (one.lower, one.upper) == (1, 1)
    settled = sih.exact_heads((1, 2, 3, 5))  # its differences are those of {1..5}
    assert (settled.lower, settled.upper) == (4, 4)
    powers = sih.exact_heads((1, 2, 4, 8))
    assert (powers.lower, powers.upper) == (2, 5)
    assert "nothing mixed" in powers.upper_by
    assert "two lags only" in sih.exact_heads((1, 2, 6)).lower_by
    with pytest.raises(ValueError, match="increasing"):
        sih.exact_heads((2, 1))


def test_brackets_hold_and_the_upper_number_is_built() -> None:
    for size in (2, 3, 4):
        for lags in itertools.combinations(range(1, 7), size):
            answer = sih.exact_heads(lags)
            assert 1 <= answer.lower <= answer.upper <= sih.least_heads(lags).heads
            profile = exact_profile(lags, 30, most=answer.upper)
            if answer.upper_by.startswith("closed form"):
                assert isinstance(profile, Profile)
                assert profile.heads == answer.upper
                assert profile.residual.max() < 1e-10


@pytest.mark.parametrize(
    "lags", [(1, 2), (3, 4, 5), (1, 2, 4), (2, 5, 8), (1, 2, 4, 8), (1, 2, 3, 5)], ids=str
)
def test_the_default_uses_it_and_is_the_posterior(
    lags: tuple[int, ...], rng: torch.Generator
) -> None:
    _is_the_posterior(lags, rng)


@pytest.mark.slow
def test_every_set_within_eight(rng: torch.Generator) -> None:
    for size in range(1, 9):
        for lags in itertools.combinations(range(1, 9), size):
            _is_the_posterior(lags, rng)


def _is_the_posterior(lags: tuple[int, ...], rng: torch.Generator) -> None:
    """The third layer's attention at every position from max_lag - 1 on, at the paper's length, any prior."""
    prior = torch.rand(len(lags), generator=rng, dtype=torch.float64) + 0.2
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), lags, 128, prior / prior.sum())
    model = sih.construct(task, target="bayes")
    assert model.circuit.heads == sih.exact_heads(lags).upper
    tokens = torch.cat(
        [sih.sample(task, 4, rng=rng).tokens, torch.randint(5, (2, 128), generator=rng)]
    )
    attention = model.trace(tokens)["3.1/attention"]
    exact = sih.lag_posterior(tokens, task)
    for j, lag in enumerate(lags):
        queries = torch.arange(lags[-1] - 1, 128)
        found = attention[:, queries, queries - lag + 1]
        assert (found - exact[:, lags[-1] - 1 :, j]).abs().max() < 1e-6


def test_the_kept_table_is_true_of_every_set_within_eight() -> None:
    table = kept_brackets()
    sets = [lags for size in range(2, 9) for lags in itertools.combinations(range(1, 9), size)]
    assert {normal_form(lags) for lags in sets} <= set(table)
    for lags in [(1, 2, 4, 8), (1, 2, 5, 7), (1, 4, 8), (1, 2, 3, 6)]:
        answer, bracket = sih.exact_heads(lags), table[normal_form(lags)]
        assert answer.searched == bracket
        assert min(bracket.unmixed, bracket.closed) == answer.upper
        assert bracket.lower == answer.lower <= bracket.query_heads
