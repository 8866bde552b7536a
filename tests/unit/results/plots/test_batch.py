from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

import sih
from sih.results.plots.batch import mutual_information


def test_information_is_the_definition() -> None:
    tokens = torch.randint(3, (5, 40), generator=torch.Generator().manual_seed(0))
    pairs = Counter(
        (int(a), int(b)) for row in tokens for a, b in zip(row[:-2], row[2:], strict=True)
    )
    total = sum(pairs.values())
    wanted = 0.0
    for (a, b), count in pairs.items():
        left = sum(n for (x, _), n in pairs.items() if x == a) / total
        right = sum(n for (_, y), n in pairs.items() if y == b) / total
        wanted += count / total * math.log(count / total / (left * right))
    assert mutual_information(tokens[:, :-2].flatten(), tokens[:, 2:].flatten()) == pytest.approx(
        wanted
    )


def test_information_peaks_at_each_lag() -> None:
    task = sih.Task(sih.random_transition_matrix(5, rng=0), lags=(1, 3, 4), length=64)
    cells, curves, _ = sih.sample(task, size=60, rng=0).plot().axes
    peaks = [int(line.get_xdata()[line.get_ydata().argmax()]) for line in curves.lines]
    assert peaks == [1, 3, 4]
    assert [text.get_text() for text in cells.texts] == ["lag 1", "lag 3", "lag 4"]


def test_a_single_sequence_of_many_states() -> None:
    assert sih.Batch(torch.arange(12)[None], torch.tensor([2])).plot().axes


def test_lags_that_switch() -> None:
    tokens = sih.sample(
        sih.Task(sih.random_transition_matrix(5, rng=0), lags=(2,), length=64), size=40, rng=0
    ).tokens
    lags = torch.full_like(tokens, 2)
    lags[:, :2], lags[:, 40:] = 0, 3  # as if they had switched, which these tokens do not know
    cells, curves, _ = sih.Batch(tokens, lags).plot().axes
    assert [text.get_text() for text in cells.texts] == ["lags\nswitch"]
    assert [line.get_label() for line in curves.lines] == ["lag 2", "lag 3"]
    assert all(line.get_ydata().argmax() == 1 for line in curves.lines)
