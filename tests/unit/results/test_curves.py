from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.pictures import same, through_file

from sih.results.curves import (
    FLOOR,
    Compared,
    Panel,
    curve,
    floored_ratio,
    mean_kl_table,
    minus,
    times,
    windows,
)


def loops(values: list[float]) -> tuple[float, float]:
    """Mean and standard error by their definition."""
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def test_a_curve_against_loops(rng: torch.Generator) -> None:
    rows = torch.rand(7, 20, generator=rng, dtype=torch.float64)
    found = curve(rows, max_lag=3)
    table = rows.tolist()
    assert len(found.mean) == len(found.error) == 19
    for i in range(19):
        mean, error = loops([row[i] for row in table])
        assert (found.mean[i].item(), found.error[i].item()) == pytest.approx(
            (mean, error), rel=1e-12
        )
    assert found.whole.pair() == pytest.approx(
        loops([sum(row[3:19]) / 16 for row in table]), rel=1e-12
    )
    assert len(found.overall) == 7


@given(st.integers(1, 40), st.integers(1, 100))
def test_windows_part_the_positions_past_max_lag(max_lag: int, more: int) -> None:
    parts = windows(max_lag, max_lag + more)
    assert [i for first, last in parts for i in range(first, last + 1)] == list(
        range(max_lag + 1, max_lag + more + 1)
    )


def test_differences_are_taken_sequence_by_sequence(rng: torch.Generator) -> None:
    """Rivals that share all but a constant differ by it without error; one measured on fewer is
    compared on those."""
    hard = torch.rand(50, 12, generator=rng, dtype=torch.float64)
    kl = {"BMA": hard, "ML": hard + 0.5, "few": hard[:9] + 0.1}
    bma, ml, few = (curve(rows, 2) for rows in kl.values())
    for one, other, expected in ((few, ml, -0.4), (ml, bma, 0.5), (bma, ml, -0.5)):
        mean, error = minus(one, other).pair()
        assert mean == pytest.approx(expected)
        assert error < 1e-12
    assert ml.whole.error.item() == pytest.approx(
        loops([sum(row[2:11]) / 9 for row in hard.tolist()])[1]
    )


def test_a_panel_survives_its_file(rng: torch.Generator) -> None:
    kl = {name: curve(torch.rand(5, 30, generator=rng), 3) for name in ("BMA", "ML", "x")}
    compared = dict.fromkeys(kl, Compared("standard", (1, 3, 1), None, ("a", "b"), (0, 1)))
    found = Panel((1, 3), compared, kl)
    assert same(through_file(found), found)


@pytest.mark.parametrize("shape", [(1, 20), (5, 4)])
def test_what_has_no_error_is_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(
        ValueError,
        match=f"two sequences or more, longer than max_lag \\+ 1 = 4; got {shape[0]}, of {shape[1]}",
    ):
        curve(torch.zeros(shape), max_lag=3)


def test_a_window_ends_at_a_power_of_two_beyond_max_lag() -> None:
    assert windows(8, 40) == [(9, 16), (17, 32), (33, 40)]  # no empty one up to 8
    assert windows(7, 32) == [(8, 8), (9, 16), (17, 32)]


def test_times_against_loops(rng: torch.Generator) -> None:
    """The ratio of two means and its error, window by window, without the last position."""
    model, reference = (
        torch.rand(60, 20, generator=rng, dtype=torch.float64) + 0.2 for _ in range(2)
    )
    found = times(model, reference, 3, "circuit")
    assert (found.reference, list(found.windows), found.left_out) == (
        "circuit",
        ["4-8", "9-16", "17-19"],
        (),
    )
    places = {"4-8": (3, 8), "9-16": (8, 16), "17-19": (16, 19)}
    for (ratio, error), (first, last) in [
        (found.windows[name], places[name]) for name in places
    ] + [(found.mean, (3, 19))]:
        x, y = (
            [sum(row[first:last]) / (last - first) for row in table]
            for table in (model.tolist(), reference.tolist())
        )
        expected = sum(x) / sum(y)
        residuals = [(a - expected * b) / (sum(y) / len(y)) for a, b in zip(x, y, strict=True)]
        assert ratio == pytest.approx(expected, rel=1e-9)
        assert error == pytest.approx(loops(residuals)[1], rel=1e-9)


def test_the_references_error_is_in_the_interval(rng: torch.Generator) -> None:
    """A model whose KL never varies is known no better than the reference."""
    reference = torch.rand(50, generator=rng, dtype=torch.float64) + 0.5
    (ratio, error), known = floored_ratio(torch.ones(50, dtype=torch.float64), reference)
    mean, spread = loops(reference.tolist())
    assert [ratio, known] == pytest.approx([1 / mean, spread / mean])
    assert error == pytest.approx(ratio * spread / mean)


@pytest.mark.parametrize(
    ("model", "reference", "expected"),
    [(1e-7, 1e-9, 1.0), (1e-2, 1e-7, 100.0), (1e-7, 1e-2, 0.01), (3e-4, 2e-4, 1.5)],
)
def test_a_kl_below_the_floor_counts_as_the_floor(
    model: float, reference: float, expected: float
) -> None:
    rows = (torch.full((20,), value, dtype=torch.float64) for value in (model, reference))
    (ratio, error), known = floored_ratio(*rows)
    assert ratio == pytest.approx(expected)
    assert error == pytest.approx(0)
    assert known == pytest.approx(0)


def test_a_window_whose_reference_is_not_known_is_left_out(rng: torch.Generator) -> None:
    reference = torch.full((40, 20), 0.01, dtype=torch.float64)
    reference[0, 8:16] = 1.0  # one sequence in forty has nearly all of it
    found = times(reference, reference, 3, "itself")
    assert (list(found.windows), found.left_out) == (["4-8", "17-19"], ("9-16",))
    assert found.windows["4-8"] == (1.0, 0.0)
    below = torch.full((40, 20), FLOOR / 50, dtype=torch.float64)
    below[0] = 10 * FLOOR  # not known to a tenth of itself, but known to be below the floor
    assert times(below, below, 3, "itself").left_out == ()


def test_two_that_are_equal_have_the_ratio_one_whatever_is_known_of_them(
    rng: torch.Generator,
) -> None:
    """Late errors are rare: of 100 sequences the KL is not known to be below the floor, of 4,000 it is."""
    rare = 0.2 * FLOOR * (torch.rand(4000, generator=rng, dtype=torch.float64) < 0.002) / 0.002
    rare[:100] = 0
    rare[:2] = 40 * FLOOR
    (ratio, error), known = floored_ratio(rare[:100].clone(), rare)
    assert (ratio, error) == (1.0, 0.0)
    assert known <= 0.1
    (ratio, error), _ = floored_ratio(
        rare[:100] + 1e-7 * torch.rand(100, generator=rng, dtype=torch.float64), rare
    )
    assert ratio == pytest.approx(1.0, abs=2e-3)
    assert error < 2e-3
    (ratio, error), _ = floored_ratio(torch.zeros(100, dtype=torch.float64), rare)
    assert ratio == 1.0
    (ratio, error), _ = floored_ratio(rare[:100] * 50, rare)  # another one: its own error stays
    assert error > 0.5


def test_headings_of_a_table_are_distinct(rng: torch.Generator) -> None:
    def of(lags: tuple[int, ...], length: int) -> Panel:
        kl = curve(torch.rand(3, length, generator=rng), lags[-1])
        return Panel(lags, {"ML": Compared("predictor")}, {"ML": kl})

    assert mean_kl_table([of((1, 2), 20), of((1, 3), 20)])[0] == ["", "{1,2}", "{1,3}"]
    assert mean_kl_table([of((1, 2), 20), of((1, 2), 9)])[0] == [
        "",
        "{1,2}, length 20",
        "{1,2}, length 9",
    ]
