"""The paper's single head for two lags."""

from __future__ import annotations

import pytest

import sih

LAGS, LENGTH = (2, 5), 24


def test_a_query_reads_each_index_with_the_sign_that_the_module_gives() -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], LAGS, LENGTH)
    model = sih.construct(task, target="two-lags", beta=7.0)
    B = model.block("3.1", "position", "2.1/1.1/position")
    for i in range(LENGTH):
        for m in range(LENGTH):
            plus = (i - m + 1 - 2 * 2) % 6 < 3
            assert B[i, m].item() == (0.0 if m >= i else 7.0 if plus else -7.0)


def test_its_keys_together_see_every_transition_but_the_newest() -> None:
    task = sih.Task([[0.9, 0.1], [0.5, 0.5]], LAGS, LENGTH)
    circuit = sih.construct(task, target="two-lags").circuit
    assert circuit.pattern == (0, 0, 0, -1, -1, -1)
    keys = circuit.second_layer.keys()[0]
    i = LENGTH - 1
    seen = keys[i - 1].int() + keys[i - 4].int()  # the keys i - k + 1
    assert seen.tolist() == [0] * 5 + [1] * (i - 5) + [0]
    assert circuit.first_exact_position == 2 * 5 - 1


def test_other_numbers_of_lags_are_refused() -> None:
    with pytest.raises(ValueError, match="for two lags"):
        sih.construct(sih.Task([[0.9, 0.1], [0.5, 0.5]], (1,), 9), target="two-lags")
