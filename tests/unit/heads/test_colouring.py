from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sih.heads.colouring import (
    Budget,
    OutOfBudgetError,
    circle,
    class_sizes,
    colour,
    cyclic_colouring,
    first_colouring,
    largest_clique,
    largest_on_circle,
    segment,
)


@given(st.sets(st.integers(1, 9), min_size=1), st.integers(1, 12))
def test_searches_against_enumeration(D: set[int], length: int) -> None:
    def apart(members: tuple[int, ...], around: int | None = None) -> bool:
        return not any(
            b - a in D
            or (
                around is not None
                and any((b - a - d) % around == 0 or (b - a + d) % around == 0 for d in D)
            )
            for a, b in itertools.combinations(members, 2)
        )

    subsets = [s for k in range(length + 1) for s in itertools.combinations(range(length), k)]
    sizes = class_sizes(D, length, Budget())
    assert sizes[length] == max(len(s) for s in subsets if apart(s))
    round_trip = [s for s in subsets if apart(s, length)] if all(d % length for d in D) else [()]
    assert len(largest_on_circle(length, D, sizes, Budget())) == max(map(len, round_trip))
    cliques = [
        s
        for k in range(1, 11)
        for s in itertools.combinations(range(10), k)
        if all(b - a in D for a, b in itertools.combinations(s, 2))
    ]
    assert len(largest_clique(D, Budget())) == max(map(len, cliques))


@given(st.sets(st.integers(1, 6), min_size=1), st.integers(1, 7), st.integers(1, 3))
def test_colourings_against_enumeration(D: set[int], length: int, colours: int) -> None:
    for adjacent, around in ((segment(length, D), False), (circle(length, D), True)):
        if adjacent is None:
            continue
        proper = [
            c
            for c in itertools.product(range(colours), repeat=length)
            if not any(
                c[a] == c[(a + d) % length]
                for a in range(length)
                for d in D
                if around or a + d < length
            )
        ]
        found = colour(adjacent, colours, Budget())
        assert (found is None) == (not proper)
        assert found is None or tuple(found) in proper
        assert first_colouring(adjacent, colours, Budget()) == (proper[0] if proper else None)
        capped = [c for c in proper if all(c.count(k) <= 2 for k in range(colours))]
        assert first_colouring(adjacent, colours, Budget(), capacity=2) == (
            capped[0] if capped else None
        )


@given(st.sets(st.integers(1, 8), min_size=1), st.integers(2, 4), st.integers(1, 3))
def test_cyclic_colourings_against_enumeration(D: set[int], colours: int, shift: int) -> None:
    period = colours * shift
    proper = [
        c
        for x in itertools.product(range(colours), repeat=shift)
        for c in [tuple((x[o % shift] + o // shift) % colours for o in range(period))]
        if not any(c[a] == c[(a + d) % period] for a in range(period) for d in D)
    ]
    found = cyclic_colouring(D, colours, shift, Budget())
    assert (found is None) == (not proper)
    if found is not None:
        assert not any(found[a] == found[(a + d) % period] for a in range(period) for d in D)
        assert {found.count(k) for k in range(colours)} == {shift}


def test_a_budget_ends_a_search() -> None:
    with pytest.raises(OutOfBudgetError):
        colour(segment(30, {1, 2, 3, 5, 6, 7, 8, 9}), 7, Budget(3))
    with pytest.raises(OutOfBudgetError):
        Budget(deadline=0.0).spend()


@pytest.mark.parametrize(("D", "length"), [({1, 4}, 13), ({2, 3, 7}, 16)])
def test_bounds_that_stop_short_change_no_answer(D: set[int], length: int) -> None:
    sizes = class_sizes(D, length, Budget())
    whole = largest_on_circle(length, D, sizes, Budget())
    for known in range(2, length):
        assert largest_on_circle(length, D, sizes[:known], Budget()) == whole
