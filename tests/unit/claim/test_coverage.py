"""Which pairs the theorem covers. That it is true of them: tests/mathematics/test_theorem.py."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

import sih
from sih.claim.coverage import THEOREMS, pairs
from sih.claim.monte_carlo import PAPER_LAGS


@pytest.mark.parametrize(
    ("lags", "proven", "open_"),
    [
        ((3, 5, 7), 6, set()),
        ((1, 2, 3), 5, {(1, 3)}),
        ((1, 3, 4), 4, {(1, 3), (1, 4)}),
        ((1, 2, 4), 4, {(1, 2), (1, 4)}),
        ((5, 9), 2, set()),
    ],
)
def test_the_papers_small_sets(
    lags: tuple[int, ...], proven: int, open_: set[tuple[int, int]]
) -> None:
    status = sih.claim_status(lags)
    assert {pair for pair, word in status.items() if word == "open"} == open_
    assert sum(word.startswith("proven: ") for word in status.values()) == proven
    assert list(status) == [(k, r) for k in lags for r in lags if r != k]


def test_the_papers_twelve_lags() -> None:
    status = sih.claim_status(PAPER_LAGS)
    assert Counter(status.values()) == {
        "proven: exchange": 53,
        "proven: Lemma D": 42,
        "proven: Lemma E": 3,
        "proven: Lemma M": 3,
        "open": 31,
    }
    still = {
        k: {r for (j, r), word in status.items() if j == k and word == "open"} for k in PAPER_LAGS
    }
    everyone = set(PAPER_LAGS)
    expected = {1: everyone - {1}, 2: everyone - {2}, 7: {1, 15, 22, 2, 9, 16}, 13: {2, 15, 28}}
    assert still == {k: expected.get(k, set()) for k in PAPER_LAGS}


def named(lags: tuple[int, ...], k: int, r: int) -> set[str]:
    """The theorem's conditions as they are printed."""
    c = {lag for lag in lags if lag % k == 0}
    d = {lag for lag in lags if lag % k == r % k}
    inside = r % k == 0
    found = set()
    if len(lags) == 2:
        found.add("two lags")
    if not inside and d == {lag + r - k for lag in c}:
        found.add("exchange")
    if inside and len(c) <= 2:
        found.add("Lemma E")
    if not inside and ((len(c) <= 3 and len(d) <= 2) or (len(c) <= 5 and len(d) == 1)):
        found.add("Lemma D")
    if not inside and len(c) == 1 and len(d) == 3:
        found.add("Lemma M")
    if c == {k, r, 2 * r - k}:
        found.add("Lemma T")
    return found


def test_conditions_are_the_printed_ones() -> None:
    for lags in (lags for size in (2, 3, 4, 7) for lags in combinations(range(1, 10), size)):
        status = sih.claim_status(lags)
        for pair in pairs(lags):
            word = status[pair.true_lag, pair.rival]
            holds = {name for name, applies in THEOREMS.items() if applies(pair)}
            assert holds == named(lags, pair.true_lag, pair.rival)
            assert word.removeprefix("proven: ") in holds if holds else word == "open"


def test_some_chains_have_more() -> None:
    assert set(sih.claim_status((1, 2, 3, 7), states=2).values()).isdisjoint({"open"})
    assert sih.claim_status((2, 4, 6), states=3)[2, 6] == "proven: 3 states"
    assert sih.claim_status((2, 4, 6, 7), states=3)[2, 6] == "open"
    assert sih.claim_status((1, 2, 4), states=3)[1, 4] == "open"
    reversible = sih.claim_status((1, 2, 3, 4), reversible=True)
    assert reversible[1, 4] == "proven: reversible"
    assert reversible[1, 3] == "open"
    assert sih.claim_status((3, 6, 12), reversible=True)[3, 12] == "open"
    mirrored = (2, 4, 8, 9, 13, 15)  # c(2) = 2 4 8, c(15) = 9 13 15
    assert sih.claim_status(mirrored, reversible=True)[2, 15] == "proven: reversible"
    assert (
        sih.claim_status(mirrored)[2, 15]
        == sih.claim_status(mirrored, reversible=True)[2, 9]
        == "open"
    )


@pytest.mark.parametrize(
    ("lags", "options", "message"),
    [
        ((3,), {}, "at least 2 lags"),
        ((2, 1), {}, "increasing"),
        ((0, 1), {}, "positive"),
        ((1, 2), {"states": 1}, "2 or more; got 1"),
    ],
)
def test_bad_input(lags: tuple[int, ...], options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        sih.claim_status(lags, **options)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
