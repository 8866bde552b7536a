"""The theorem of docs/proofs/theorem.md is true of the pairs that it covers, for f free of P, in fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mathematics.oracles_lemmas import free_betweenness, free_gaps, stationary

import sih

pytestmark = pytest.mark.slow
Q = Fraction


@st.composite
def chains(draw: st.DrawFn, size: int, reversible: bool = False) -> list[list[Fraction]]:
    """Random, nearly a cycle, or nearly deterministic; reversible if its weights are symmetric."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["random", "cycle", "deterministic"]))
    weights = [[Q(rng.randint(1, 20)) for _ in range(size)] for _ in range(size)]
    for i, row in enumerate(weights):
        if kind == "cycle":
            row[(i + 1) % size] += 3000
        if kind == "deterministic":
            row[rng.randrange(size)] += 5000
    if reversible:
        weights = [[weights[i][j] + weights[j][i] for j in range(size)] for i in range(size)]
    return [[x / sum(row) for x in row] for row in weights]


values = st.one_of(
    st.just(Q(0)),
    st.integers(0, 3).map(Q),
    st.integers(0, 1000).map(Q),
    st.integers(990, 1010).map(Q),
)
SETS = [
    (1, 2), (1, 2, 3), (1, 3, 4), (1, 2, 4), (2, 4, 5), (2, 3, 5), (2, 4, 6), (2, 3, 4), (3, 5, 7),
    (2, 3, 4, 5), (1, 4, 7, 3), (1, 2, 3, 5), (2, 4, 6, 3), (1, 2, 3, 4), (4, 8, 1, 5), (3, 6, 4, 7),
    (2, 4, 6, 8, 3), (2, 4, 6, 8, 1, 5),
]  # fmt: skip


@settings(max_examples=60)
@given(st.sampled_from(SETS), st.data())
def test_proven_pairs_hold_for_any_f(lags: tuple[int, ...], data: st.DataObject) -> None:
    """Over the stationary process, in fractions: every gap is above 0, or 0 where f is constant."""
    lags = tuple(sorted(lags))
    size = 4 if len(lags) <= 3 else 3 if len(lags) <= 4 else 2
    P = data.draw(chains(size))
    f = data.draw(st.lists(values, min_size=size, max_size=size))
    status = sih.claim_status(lags)
    for k in lags:
        for r, gap in free_gaps(P, f, lags, k).items():
            assert status[k, r] == "open" or (gap > 0 if len(set(f)) > 1 else gap == 0)


@settings(max_examples=40)
@given(
    st.sampled_from([(1, 2), (1, 2, 3), (1, 3, 4), (2, 3, 5), (2, 4, 6), (2, 3, 4, 6)]), st.data()
)
def test_every_position_of_algorithm_one(lags: tuple[int, ...], data: st.DataObject) -> None:
    """From the first transition on, where the tokens before it are independent: all but exchange."""
    P = data.draw(chains(3))
    f = data.draw(st.lists(values, min_size=3, max_size=3))
    status = sih.claim_status(lags)
    last = lags[-1]
    for k in lags:
        steady = free_gaps(P, f, lags, k)
        assert free_gaps(P, f, lags, k, 2 * last - k + 1) == steady
        for position in range(last + 1, 2 * last - k + 1):
            for r, gap in free_gaps(P, f, lags, k, position).items():
                sure = status[k, r] not in ("open", "proven: exchange")
                assert not sure or (gap > 0 if len(set(f)) > 1 else gap == 0)


def test_the_oracle_follows_algorithm_one() -> None:
    """Against every sequence of the algorithm, token by token."""
    P = [[Q(1, 2), Q(1, 2)], [Q(1, 5), Q(4, 5)]]
    pi, f, lags = stationary(P), [Q(1), Q(3)], (1, 2, 3)
    for k in lags:
        for i in (4, 5, 6):
            laws = {tuple(int(b) for b in f"{n:03b}"): Q(1) for n in range(8)}
            laws = {x: pi[x[0]] * pi[x[1]] * pi[x[2]] for x in laws}
            for _ in range(i - 4):
                laws = {(*x, s): p * P[x[-k]][s] for x, p in laws.items() for s in range(2)}
            gaps = dict.fromkeys((r for r in lags if r != k), Q(0))
            for x, p in laws.items():
                for r in gaps:
                    y, z = f[x[-k]], f[x[-r]]
                    gaps[r] += p * y * (y - z) / sum(f[x[-lag]] for lag in lags)
            assert gaps == free_gaps(P, f, lags, k, i)


@settings(max_examples=30)
@given(st.sampled_from([(1, 2, 3), (2, 4, 6), (1, 2, 3, 4), (1, 3, 4, 6)]), st.data())
def test_reversible_chains(lags: tuple[int, ...], data: st.DataObject) -> None:
    P = data.draw(chains(3, reversible=True))
    f = data.draw(st.lists(values, min_size=3, max_size=3))
    status = sih.claim_status(lags, reversible=True)
    for k in lags:
        for r, gap in free_gaps(P, f, lags, k).items():
            assert status[k, r] == "open" or gap >= 0


@settings(max_examples=40)
@given(
    st.sampled_from(
        [(1, 2, 3), (2, 3, 4), (1, 3, 4), (3, 5, 7), (1, 3, 5), (2, 3, 4, 5), (2, 3, 4, 7)]
    ),
    st.data(),
)
def test_the_true_lag_is_not_between_two_others(lags: tuple[int, ...], data: st.DataObject) -> None:
    """Lemma B for c(k) = {k, l} and any r outside; exchange where k and r are alone. For three lags: 3 gap = N + B."""
    P = data.draw(chains(3))
    f = data.draw(st.lists(values, min_size=3, max_size=3))
    status = sih.claim_status(lags)
    for k in lags:
        own = [lag for lag in lags if lag % k == 0]
        for r in lags:
            for other in lags:
                if len({k, r, other}) < 3:
                    continue
                between, square = free_betweenness(P, f, lags, k, r, other)
                if len(own) == 2 and other in own:
                    assert between >= 0
                if len(own) == 1 and status[k, r] == "proven: exchange":
                    assert between == square / 2
                if len(lags) == 3:
                    assert 3 * free_gaps(P, f, lags, k)[r] == square + between


def test_other_marginals_break_the_theorem() -> None:
    """Lags 1 2 3, true lag 3, first tokens fixed to the states 1, 2, 3: at position 4 lag 2 scores more than lag 3."""
    P = [[Q(x, 100) for x in row] for row in ((50, 49, 1), (30, 69, 1), (98, 1, 1))]
    scores = dict.fromkeys((1, 2, 3), Q(0))
    for s in range(3):
        p = {lag: P[3 - lag][s] for lag in scores}  # tokens 1, 2, 3 are the states 0, 1, 2
        for lag in scores:
            scores[lag] += p[3] * p[lag] / sum(p.values())
    assert (scores[3], scores[2]) == (Q(39211, 113475), Q(42181, 113475))
