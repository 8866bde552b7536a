from __future__ import annotations

import dataclasses

import pytest

import sih
from sih.circuits.verification import Verification


@pytest.fixture(scope="module")
def found() -> Verification:
    return sih.verify(
        sih.construct(sih.Task([[0.9, 0.1], [0.4, 0.6]], lags=(1, 2), length=16), target="bayes")
    )


def test_every_value_that_was_compared_is_named(found: Verification) -> None:
    (ax,) = found.plot().axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        each.site for each in found.comparisons
    ]
    assert ax.get_title().startswith("the weights hold the circuit")
    assert any(line.get_label() == "posterior's error" for line in ax.lines)


def test_what_fails_is_marked(found: Verification) -> None:
    worst = dataclasses.replace(found.comparisons[-1], error=0.5)
    broken = dataclasses.replace(found, comparisons=(*found.comparisons[:-1], worst))
    (ax,) = broken.plot().axes
    assert ax.get_title().startswith("the weights do not hold")
    assert [line.get_marker() for line in ax.lines].count("X") == 1
