"""Scores of pairs of positions as products of few functions, against the functions themselves."""

import math
from fractions import Fraction

import pytest
import torch

from sih.circuits.position_forms import ONE, XX, Feature, Form, X, column

LENGTH = 40


def values(form: Form) -> list[list[float]]:
    """The form at every pair, by plain loops over its terms."""
    columns: dict[Feature, list[float]] = {
        f: column(f, LENGTH).tolist() for pair in form.terms for f in pair
    }
    terms = form.terms.items()
    return [
        [sum(v * columns[p][a] * columns[q][b] for (p, q), v in terms) for b in range(LENGTH)]
        for a in range(LENGTH)
    ]


@pytest.mark.parametrize("turn", [Fraction(1, 3), Fraction(1, 2), Fraction(2, 7), 0.1234])
def test_a_wave_depends_on_the_difference(turn: Fraction | float) -> None:
    form = Form()
    phase = 0.0 if turn == Fraction(1, 2) else 0.7  # at half a turn a step the sine is 0 everywhere
    form.wave(turn, 1.5, phase)
    for a, row in enumerate(values(form)):
        for b, value in enumerate(row):
            assert value == pytest.approx(
                1.5 * math.cos(2 * math.pi * float(turn) * (a - b) + phase), abs=1e-12
            )


@pytest.mark.parametrize("shift", [0, 1, -1])
@pytest.mark.parametrize(
    "numbers",
    [[3.0], [1.0, -2.0], [0.5, 4.0, -1.0], [1.0, 2.0, 3.0, 5.0], [0.0, 0.0, 1.0, 7.0, 2.0]],
)
def test_any_periodic_function_is_a_form(numbers: list[float], shift: int) -> None:
    form = Form()
    form.periodic(numbers, shift)
    for a, row in enumerate(values(form)):
        for b, value in enumerate(row):
            assert value == pytest.approx(numbers[(a - b + shift) % len(numbers)], abs=1e-12)
    assert len({f for pair in form.terms for f in pair}) == len(numbers)


def test_a_parabola_of_the_difference_is_a_form_and_exact() -> None:
    form = Form()
    form.parabola(0.25, -1.5)
    found = values(form)
    assert all(
        found[a][b] == -0.25 * (a - b - 1.5) ** 2 for a in range(LENGTH) for b in range(LENGTH)
    )
    columns: dict[Feature, torch.Tensor] = {f: column(f, LENGTH) for f in (ONE, X, XX)}
    assert form.values(columns).tolist() == found


def test_waves_of_rational_turns_repeat_to_the_last_digit() -> None:
    wave = column(("cos", Fraction(2, 7)), 700)
    assert torch.equal(wave[:7].repeat(100), wave)
