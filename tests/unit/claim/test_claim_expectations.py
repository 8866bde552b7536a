from __future__ import annotations

import itertools
import statistics
from pathlib import Path

import pytest
import torch
from support import oracles_claim as oracles

import sih
from sih.claim import (
    claim_expectations,
    claim_expectations_figure,
    claim_histogram,
    claim_histogram_figure,
)
from sih.claim.claim_histogram import ClaimConfig
from sih.claim.exact import claim_table
from sih.claim.monte_carlo import random_matrices
from sih.results import style
from sih.training.runs.run_store import RunStore

LAGS = (1, 2, 5)


def by_loops(matrices: int) -> list[list[list[float]]]:
    """The expectations of each matrix, for each true lag, over every window of tokens."""
    found = []
    for P in random_matrices(3, matrices, seed=0):
        pi = sih.stationary_distribution(P).tolist()
        found.append([oracles.expectations(P.tolist(), pi, list(LAGS), k) for k in LAGS])
    return found


def test_expectations() -> None:
    data = claim_expectations.compute(ClaimConfig(num_states=3, matrices=4, lags=LAGS), RunStore())
    each = by_loops(4)
    for a, b in itertools.product(range(3), repeat=2):
        values = [matrix[a][b] for matrix in each]
        assert data.mean[a, b].item() == pytest.approx(statistics.fmean(values))
        assert data.spread[a, b].item() == pytest.approx(statistics.stdev(values))
    gaps = [
        [row[a] - max(row[:a] + row[a + 1 :]) for a, row in enumerate(matrix)] for matrix in each
    ]
    assert data.margins.tolist() == [pytest.approx(row) for row in gaps]
    assert (data.matrices, data.num_states) == (4, 3)
    figure = claim_expectations_figure.draw(data)
    assert [ax.get_title() for ax in figure.axes] == ["true lag 1", "true lag 2", "true lag 5"]
    heights = [patch.get_height() for patch in figure.axes[1].patches]  # type: ignore[attr-defined]
    assert heights == pytest.approx(data.mean[1].tolist())


def test_expectations_of_one_matrix_have_no_spread(rng: torch.Generator) -> None:
    data = claim_expectations.bars_of(
        claim_table(sih.random_transition_matrix(3, rng=rng)[None], LAGS), 3
    )
    assert data.spread.tolist() == [[0.0] * 3] * 3


def test_histogram() -> None:
    data = claim_histogram.compute(
        claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=LAGS), RunStore()
    )
    gaps = [
        [row[a] - max(row[:a] + row[a + 1 :]) for a, row in enumerate(matrix)]
        for matrix in by_loops(4)
    ]
    assert data.margins.tolist() == [pytest.approx(row) for row in gaps]
    ax = claim_histogram_figure.draw(data).axes[0]
    assert sum(patch.get_height() for patch in ax.patches) == 12  # type: ignore[attr-defined]
    assert claim_histogram.EXPERIMENT.config.lags == (1, 2, 7, 9, 10, 11, 13, 15, 16, 22, 26, 28)
    assert (
        claim_histogram.EXPERIMENT.config.matrices,
        claim_histogram.EXPERIMENT.config.num_states,
    ) == (1000, 10)


def test_figures_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    data = claim_histogram.compute(
        claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=LAGS), RunStore()
    )
    first, second = (
        style.save(claim_histogram_figure.draw(data), tmp_path / name / "figure") for name in "ab"
    )
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
