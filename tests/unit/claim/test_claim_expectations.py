from __future__ import annotations

import dataclasses
import itertools
import statistics
from pathlib import Path

import pytest
import torch
from matplotlib.colors import to_hex
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
from sih.claim.sampled import sampled_gaps
from sih.results import style
from sih.training.runs.run_store import RunStore

LAGS = (1, 2, 5)


def by_loops(matrices: int) -> list[list[list[float]]]:
    """The expectations of each matrix, for each true lag, over every window of tokens."""
    found = []
    for P in random_matrices(3, matrices, seed=0, law="uniform"):
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
    assert data.sampled is None  # nothing is kept of this task
    assert "Dots" not in claim_expectations_figure.caption(ClaimConfig(num_states=3, lags=LAGS))


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
    ax, first = claim_histogram_figure.draw(data).axes
    assert sum(patch.get_height() for patch in ax.patches) == 12  # type: ignore[attr-defined]
    assert first.get_title() == "the first matrix"
    assert data.first is not None
    assert data.sampled is None
    assert (data.first.gaps - data.margins[0]).abs().max() < 3 * data.first.error.max()
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


PAPERS = ClaimConfig(matrices=10)


@pytest.fixture(scope="module")
def papers() -> claim_expectations.ExpectationBars:
    return claim_expectations.compute(PAPERS, RunStore())


def test_the_bars_are_on_the_papers_axis(papers: claim_expectations.ExpectationBars) -> None:
    """Figs. 15 and 16 run from .080 to .110; a colour and an entry of the legend for each of twelve lags."""
    figure = claim_expectations_figure.draw(papers)
    assert {ax.get_ylim() for ax in figure.axes} == {(0.080, 0.110)}
    assert figure.axes[0].get_ylabel().endswith("(from 0.08)")
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [*(f"lag {lag}" for lag in PAPERS.lags), "sampled as printed"]
    colours = [to_hex(patch.get_facecolor()) for patch in figure.axes[0].patches]
    assert len(set(colours)) == 12
    words = claim_expectations_figure.caption(PAPERS)
    for part in ("uniform rows", "does not begin at 0", "Dots"):
        assert part in words


def test_sampling_agrees_with_the_exact_bars(papers: claim_expectations.ExpectationBars) -> None:
    """A mean of ten matrices, each known to .0016 at most: 144 numbers within five standard errors."""
    assert papers.sampled is not None
    assert (papers.sampled - papers.mean).abs().max() < 5 * 0.0016 / 10**0.5


def test_the_histogram_is_on_the_papers_axes() -> None:
    config = ClaimConfig(matrices=60, sampled_sequences=20)
    data = claim_histogram.compute(config, RunStore())
    assert data.sampled is None  # with fewer sequences it is another check
    kept = sampled_gaps(claim_histogram.printed_check(ClaimConfig(matrices=60)))
    ax = claim_histogram_figure.draw(dataclasses.replace(data, sampled=kept)).axes[0]
    assert ax.get_xlim() == claim_histogram_figure.PAPERS_RANGE
    assert ax.get_ylim() == (0, 1250)
    assert ax.get_xticks().tolist() == [0.020, 0.025, 0.030, 0.035]
    low, high = claim_histogram_figure.PAPERS_RANGE
    words = [text.get_text() for text in ax.texts]
    assert f"← {int((data.margins < low).sum())}" in words
    assert f"{int((data.margins > high).sum())} →" in words
    usual = claim_histogram_figure.draw(dataclasses.replace(data, margins=4 * data.margins)).axes[0]
    assert usual.get_xlim()[0] == 0  # gaps of other matrices are not cut
