"""The least number of heads: values, patterns, certificates, brackets, fewer heads, the command and the drawing."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import Patch, Rectangle
from support.oracles_heads import mixes, patterns, some_assignment

import sih
from sih.cli import main
from sih.construction import Certificate, head_offsets, least_heads, verify_certificate, verify_colouring
from sih.construction.heads import least as heads_module
from sih.construction.heads.colouring import (
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
from sih.construction.heads.fewer import none_denser
from sih.construction.heads.least import distances
from sih.experiments import head_counts as figure

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
SMALL = [lags for k in range(1, 6) for lags in itertools.combinations(range(1, 6), k)]

lag_sets = st.sets(st.integers(1, 16), min_size=1, max_size=7).map(lambda s: tuple(sorted(s)))


@pytest.mark.parametrize(("lags", "heads"), CHECKED)
def test_values_of_the_mathematics(lags: tuple[int, ...], heads: int) -> None:
    answer = least_heads(lags)
    assert (answer.heads, answer.lower, answer.upper, answer.exact) == (heads, heads, heads, True)
    assert not mixes(lags, answer.colours)
    assert set(answer.colours) == set(range(heads))
    assert verify_certificate(lags, answer.certificate)


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
    assert verify_certificate(lags, answer.certificate)
    assert sum(answer.density(h) for h in range(answer.heads)) == answer.used == 1


@settings(max_examples=40)
@given(lag_sets, st.integers(1, 20), st.integers(1, 3))
def test_only_differences_matter_and_scale_does_not(lags: tuple[int, ...], move: int, scale: int) -> None:
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
            assert verify_certificate(lags, answer.certificate), lags


def test_all_kinds_of_certificate_occur_and_broken_ones_fail() -> None:
    kinds = {}
    for lags in ((1, 2, 4, 8), (1, 2, 5, 12), (1, 2, 7, 9, 10), (1, 4, 9)):
        proof = least_heads(lags).certificate
        kinds[proof.kind] = proof
        assert verify_certificate(lags, proof)
        assert not verify_certificate(lags, dataclasses.replace(proof, heads=proof.heads + 1))
        assert not verify_certificate(lags, dataclasses.replace(proof, points=proof.points[:-1]))
        assert not verify_certificate(lags, dataclasses.replace(proof, points=proof.points[:-1] * 2))
        assert not verify_certificate((lags[0], lags[-1]), proof)
    assert set(kinds) == {"clique", "count", "exhaustion"}
    assert not verify_certificate((1, 2, 5, 12), dataclasses.replace(kinds["count"], largest=None))
    smaller = dataclasses.replace(kinds["count"], largest=(kinds["count"].largest or 0) - 1)
    assert not verify_certificate((1, 2, 5, 12), smaller)
    assert not verify_certificate((1, 2), Certificate("clique", 1, ()))


def test_a_wrong_colouring_is_refused() -> None:
    assert verify_colouring((1, 3), (0, 0, 1, 1))
    assert not verify_colouring((1, 3), (0, 1))
    assert not verify_colouring((1, 3), (0, 0, 1))
    assert verify_colouring((1, 3), (0, -1, -1, -1))
    assert not verify_colouring((1, 3), ())


@pytest.mark.parametrize("lags", [lags for lags in SMALL if lags[0] == 1])
def test_checker_of_exhaustion_agrees_with_brute_force(lags: tuple[int, ...]) -> None:
    for length, heads in itertools.product((5, 9), (1, 2, 3, 4)):
        proof = Certificate("exhaustion", heads + 1, tuple(range(length)))
        assert verify_certificate(lags, proof) == (some_assignment(lags, length, heads) is None)


@given(st.sets(st.integers(1, 9), min_size=1), st.integers(1, 12))
def test_searches_against_enumeration(D: set[int], length: int) -> None:
    def apart(members: tuple[int, ...], around: int | None = None) -> bool:
        return not any(
            b - a in D
            or (around is not None and any((b - a - d) % around == 0 or (b - a + d) % around == 0 for d in D))
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
            if not any(c[a] == c[(a + d) % length] for a in range(length) for d in D if around or a + d < length)
        ]
        found = colour(adjacent, colours, Budget())
        assert (found is None) == (not proper)
        assert found is None or tuple(found) in proper
        assert first_colouring(adjacent, colours, Budget()) == (proper[0] if proper else None)
        capped = [c for c in proper if all(c.count(k) <= 2 for k in range(colours))]
        assert first_colouring(adjacent, colours, Budget(), capacity=2) == (capped[0] if capped else None)


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


def test_out_of_time_is_an_honest_bracket() -> None:
    lags = (2, 6, 12, 15, 36, 38, 39, 41, 52, 58, 59, 61)
    answer = least_heads(lags, time_limit=0.05)
    assert not answer.exact
    assert len(lags) <= answer.lower < answer.heads == answer.upper <= 60
    assert answer.time_limit == 0.05
    assert verify_colouring(lags, answer.colours)
    assert verify_certificate(lags, answer.certificate)


def test_a_budget_ends_a_search() -> None:
    with pytest.raises(OutOfBudgetError):
        colour(segment(30, {1, 2, 3, 5, 6, 7, 8, 9}), 7, Budget(3))
    with pytest.raises(OutOfBudgetError):
        Budget(deadline=0.0).spend()


@pytest.mark.parametrize("lags", [(1, 2), (1, 2, 3), (1, 3), (1, 3, 4), (2, 5), (1, 4, 5), (1, 2, 4)])
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


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "answer.json"
    assert main(["heads", "--lags", "1", "2", "4", "8", "--check", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "5 heads, and no fewer" in text
    assert "0, 1, 2, 3, 4 differ by differences of two lags" in text
    assert "0 1 2 3 4" in text
    assert "pattern holds, proof holds" in text
    record = json.loads(out.read_text())
    assert (record["heads"], record["exact"], record["colours"]) == (5, True, [0, 1, 2, 3, 4])


def test_command_with_fewer_heads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", "--lags", "1", "2", "3", "--heads", "1"]) == 0
    text = capsys.readouterr().out
    assert "with 1 head: 1/3 of the transitions are used, the most possible" in text
    assert "0 . ." in text


def test_command_explains_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    for lags, reason in (
        ("7", "nothing to mix with"),
        ("1 2 5 12", "one head can take at most"),
        ("1 4 9", "was tried, and mixes"),
    ):
        assert main(["heads", "--lags", *lags.split()]) == 0
        assert reason in capsys.readouterr().out


def test_command_states_a_bracket(capsys: pytest.CaptureFixture[str]) -> None:
    lags = "2 6 12 15 36 38 39 41 52 58 59 61"
    assert main(["heads", "--lags", *lags.split(), "--time-limit", "0.05"]) == 0
    assert "not settled in the 0.05 s allowed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["--lags", "1", "1"],
        ["--lags", "a"],
        [],
        ["--lags", "1", "2", "--draw", "x.gif"],
        ["--lags", "1", "2", "--heads", "0"],
    ],
)
def test_command_refuses_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sih: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_command_draws(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"pattern.{suffix}"
    assert main(["heads", "--lags", "1", "3", "--draw", str(target)]) == 0
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert target.read_bytes().startswith(magic[suffix])


def test_drawing_shows_every_offset_once_and_every_index_once() -> None:
    for pattern in (least_heads((1, 3, 4)), head_offsets((1, 2, 7, 9, 10), 3)):
        top, bottom = figure.draw_pattern(pattern).axes
        cells = [_centre(p) for p in top.patches]
        assert all(pattern.colours[x % pattern.period] == y for x, y in cells)
        assert len(cells) == len(set(cells))
        stored = [_centre(p) for p in bottom.patches]
        assert len(stored) == len(set(stored))


def _centre(patch: Patch) -> tuple[int, int]:
    assert isinstance(patch, Rectangle)
    x, y = patch.get_center()
    return round(x), round(y)


def test_figure_counts_every_set() -> None:
    table = figure.compute(dataclasses.replace(figure.config(), largest=6))
    assert sum(table.counts.values()) == 63
    assert table.unsettled == ()
    assert sum(table.by(0).values()) == sum(table.by(1).values()) == 63
    assert all(number <= heads <= span for number, span, heads in table.counts)
    assert len(figure.draw(table).axes) == 2
    with pytest.raises(ValueError, match="at least 1; got 0"):
        figure.compute(figure.Config(largest=0))
