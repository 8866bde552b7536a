"""The least number of heads: values, patterns, proofs, brackets."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracles_heads import SMALL, mixes, patterns, some_assignment
from support.strategies import lag_sets

import sih
from sih.heads import head_offsets, heads_needed, least_heads, verify_colouring, verify_lower_bound
from sih.heads import least as heads_module

CHECKED = [  # mathematics.md 2, and a single lag
    ((5,), 1),
    ((1, 2, 3), 3),
    ((4, 5, 6, 7, 8), 5),
    ((1, 3), 2),
    ((1, 3, 4), 4),
    ((3, 5, 7), 3),
    ((2, 5), 2),
    ((1, 4, 9), 4),
    ((1, 2, 4, 8), 5),
    ((1, 2, 7, 9, 10), 8),
]


@pytest.mark.parametrize(("lags", "heads"), CHECKED)
def test_values_of_the_mathematics(lags: tuple[int, ...], heads: int) -> None:
    answer = least_heads(lags)
    assert (answer.heads, answer.lower, answer.upper, answer.exact) == (heads, heads, heads, True)
    assert not mixes(lags, answer.colours)
    assert set(answer.colours) == set(range(heads))
    assert verify_lower_bound(lags, answer.certificate)


@pytest.mark.parametrize(
    ("lags", "colours"),
    [
        ((7,), (0,)),
        ((1, 2, 3), (0, 1, 2)),
        ((2, 3, 4, 5), (0, 1, 2, 3)),
        ((1, 3), (0, 0, 1, 1)),
        ((1, 3, 4), (0, 1, 2, 3)),
        ((3, 5, 7), (0, 1, 2)),
        ((2, 5), (0, 1)),
    ],
)
def test_the_papers_patterns(lags: tuple[int, ...], colours: tuple[int, ...]) -> None:
    answer = least_heads(lags)
    assert answer.colours == colours
    assert answer.preferred


@pytest.mark.parametrize("lags", SMALL)
def test_least_and_preferred_by_brute_force(lags: tuple[int, ...]) -> None:
    answer = least_heads(lags)
    assert some_assignment(lags, 24, answer.heads) is not None
    assert some_assignment(lags, 24, answer.heads - 1) is None
    found: list[tuple[int, ...]] = []
    for period in range(1, answer.period + 1):
        assert not found, "a shorter period does"
        found = patterns(lags, period, answer.heads)
    equal = [p for p in found if len({p.count(h) for h in range(answer.heads)}) == 1]
    assert answer.preferred
    assert answer.colours == (equal or found)[0]


@settings(max_examples=40)
@given(lag_sets)
def test_any_set_is_proved_from_both_sides(lags: tuple[int, ...]) -> None:
    answer = least_heads(lags)
    assert len(lags) <= answer.lower <= answer.upper <= lags[-1] - lags[0] + 1
    assert not mixes(lags, answer.colours, 2 * (answer.period + lags[-1]))
    assert verify_colouring(lags, answer.colours)
    assert verify_lower_bound(lags, answer.certificate)
    assert sum(answer.density(h) for h in range(answer.heads)) == answer.used == 1


@settings(max_examples=40)
@given(lag_sets, st.integers(1, 20), st.integers(1, 3))
def test_only_differences_matter_and_scale_does_not(
    lags: tuple[int, ...], move: int, scale: int
) -> None:
    answer = least_heads(lags)
    assert least_heads([k + move for k in lags]).colours == answer.colours
    assert least_heads(sorted(lags[-1] + 1 - k for k in lags)).colours == answer.colours
    assert least_heads([k * scale for k in lags]).heads == answer.heads


@pytest.mark.parametrize("lags", [(1, 3), (3, 5, 7), (1, 5, 9), (2, 8, 20), (1, 3, 7, 15)])
def test_what_the_search_finds_is_proper_before_it_is_tidied(
    lags: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads_module, "TIDY", 0)
    heads_module._solve.cache_clear()
    answer = least_heads(lags)
    heads_module._solve.cache_clear()
    assert not answer.preferred
    assert not mixes(lags, answer.colours)


def test_three_lags_follow_the_known_theorem() -> None:
    """G(Z, {x, y, x+y}), x and y coprime, needs 3 colours if 3 divides x - y (mod 3, x and y equal), else 4."""
    for a, b, c in itertools.combinations(range(1, 14), 3):
        x, y = b - a, c - b
        g = math.gcd(x, y)
        assert least_heads((a, b, c)).heads == (3 if (x // g - y // g) % 3 == 0 else 4), (a, b, c)


@pytest.mark.slow
def test_all_sets_within_12() -> None:
    for k in range(1, 13):
        for lags in itertools.combinations(range(1, 13), k):
            answer = least_heads(lags)
            assert answer.exact, lags
            assert answer.preferred, lags
            assert not mixes(lags, answer.colours), lags
            assert verify_lower_bound(lags, answer.certificate), lags


def test_out_of_time_is_an_honest_bracket() -> None:
    lags = (2, 6, 12, 15, 36, 38, 39, 41, 52, 58, 59, 61)
    answer = least_heads(lags, time_limit=0.05)
    assert not answer.exact
    assert len(lags) <= answer.lower < answer.heads == answer.upper <= 60
    assert answer.time_limit == 0.05
    assert verify_colouring(lags, answer.colours)
    assert verify_lower_bound(lags, answer.certificate)


@pytest.mark.parametrize("lags", [(), (0, 1), (2, 1), (1, 1)])
def test_bad_lags(lags: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="lags must be distinct"):
        least_heads(lags)


def test_bad_time_limit() -> None:
    with pytest.raises(ValueError, match="positive number of seconds; got 0"):
        least_heads((1, 2), time_limit=0)


def test_public_names() -> None:
    assert sih.least_heads is least_heads
    assert sih.head_offsets is head_offsets


def test_two_lags_need_one_head_and_other_sets_the_least() -> None:
    assert [heads_needed(lags) for lags in ((4,), (1, 3), (2, 5), (1, 2, 3), (1, 3, 4))] == [
        1,
        1,
        1,
        3,
        4,
    ]
