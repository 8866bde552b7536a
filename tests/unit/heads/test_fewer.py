from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracles_heads import mixes, patterns
from support.strategies import lag_sets

from sih.heads import head_offsets, least_heads
from sih.heads.colouring import (
    Budget,
)
from sih.heads.fewer import _largest_classes, none_denser
from sih.heads.least import Pattern, distances


@pytest.mark.parametrize(
    "lags", [(1, 2), (1, 2, 3), (1, 3), (1, 3, 4), (2, 5), (1, 4, 5), (1, 2, 4)]
)
@pytest.mark.parametrize("heads", [1, 2])
def test_fewer_heads_use_the_most_offsets(lags: tuple[int, ...], heads: int) -> None:
    answer = head_offsets(lags, heads)
    most = max(
        Fraction(sum(k >= 0 for k in p), period)
        for period in range(1, 10 if heads == 1 else 8)
        for p in patterns(lags, period, heads, idle=True)
    )
    assert not mixes(lags, answer.colours)
    assert answer.optimal
    assert answer.used == answer.most == most


@settings(max_examples=40)
@given(lag_sets, st.integers(1, 6))
def test_fewer_heads_never_mix(lags: tuple[int, ...], heads: int) -> None:
    answer = head_offsets(lags, heads)
    assert not mixes(lags, answer.colours, 2 * (answer.period + lags[-1]))
    assert answer.heads <= heads
    assert answer.used <= answer.most
    assert set(answer.colours) - {-1} == set(range(answer.heads))
    if heads <= len(lags) and lags[-1] - lags[0] <= 12:
        assert answer.optimal


def test_patterns_of_fewer_heads() -> None:
    assert head_offsets((1, 2, 3), 1).colours == (0, -1, -1)
    assert head_offsets((1, 2, 3), 2).colours == (0, 1, -1)
    assert head_offsets((1, 3), 1).colours == (0, 0, -1, -1)
    assert head_offsets((1, 2, 3), 5) == least_heads((1, 2, 3))
    assert head_offsets((1, 2, 3), 1).offsets(0, below=7) == (0, 3, 6)
    assert head_offsets((1, 4, 9), 1).used == Fraction(4, 13)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        head_offsets((1, 2), 0)


def test_a_density_is_proved_or_refused() -> None:
    D = distances((1, 4, 9))
    assert none_denser(D, Fraction(4, 13), Budget())
    assert not none_denser(D, Fraction(3, 10), Budget())
    assert not none_denser(D, Fraction(4, 13), Budget(5))


def test_the_classes_that_are_kept_are_the_largest() -> None:
    assert _largest_classes((2, 0, 1, 1, 2, 1), 1) == (-1, -1, 0, 0, -1, 0)
    assert _largest_classes((2, 0, 1, 1, 2, 1), 2) == (0, -1, 1, 1, 0, 1)


def test_only_a_pattern_with_gaps_says_how_much_it_uses() -> None:
    assert "used='1/3'" in repr(head_offsets((1, 2, 3), 1))
    assert "used" not in repr(Pattern((1, 2), (0, 1), 2, Fraction(1)))
