"""The figures of Claim 1: what they show is computed apart from how it is drawn."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import sih
from sih.experiments import beta, claim_cumulative, claim_expectations, claim_histogram, wrong_lag
from sih.figures import style
from sih.figures.beta_panels import draw_beta
from sih.figures.claim_panels import draw_claim_cumulative, draw_claim_expectations, draw_claim_histogram
from sih.figures.rate_points import draw_wrong_lag
from sih.runs.run_store import RunStore
from sih.theory.claim import claim_table
from sih.theory.monte_carlo import random_matrices
from sih.theory.rates import SCORES

LAGS = (1, 2, 5)


def test_histogram() -> None:
    data = claim_histogram.compute(claim_histogram.HistogramConfig(num_states=3, matrices=4, lags=LAGS), RunStore())
    table = claim_table(random_matrices(3, 4, seed=0), LAGS)
    torch.testing.assert_close(torch.tensor(data.margins).double(), table.margins, rtol=0, atol=1e-6)
    ax = draw_claim_histogram(data).axes[0]
    assert sum(patch.get_height() for patch in ax.patches) == 12  # type: ignore[attr-defined]
    assert claim_histogram.EXPERIMENT.config.lags == (1, 2, 7, 9, 10, 11, 13, 15, 16, 22, 26, 28)
    assert (claim_histogram.EXPERIMENT.config.matrices, claim_histogram.EXPERIMENT.config.num_states) == (1000, 10)


def test_expectations() -> None:
    data = claim_expectations.compute(
        claim_expectations.ExpectationsConfig(num_states=3, matrices=4, lags=LAGS), RunStore()
    )
    values = claim_table(random_matrices(3, 4, seed=0), LAGS).expectations
    torch.testing.assert_close(torch.tensor(data.mean).double(), values.mean(dim=0), rtol=0, atol=1e-6)
    torch.testing.assert_close(torch.tensor(data.spread).double(), values.std(dim=0), rtol=0, atol=1e-6)
    figure = draw_claim_expectations(data)
    assert [ax.get_title() for ax in figure.axes] == ["true lag 1", "true lag 2", "true lag 5"]
    heights = [patch.get_height() for patch in figure.axes[1].patches]  # type: ignore[attr-defined]
    assert heights == pytest.approx(data.mean[1])


def test_expectations_of_one_matrix_have_no_spread(rng: torch.Generator) -> None:
    data = claim_expectations.of_table(claim_table(sih.random_transition_matrix(3, rng=rng)[None], LAGS), 3)
    assert data.spread == [[0.0] * 3] * 3


def test_cumulative_averages_converge_to_the_expectations() -> None:
    data = claim_cumulative.compute(
        claim_cumulative.CumulativeConfig(num_states=3, lags=LAGS, length=20_000), RunStore()
    )
    last = torch.tensor([[path[-1] for path in row] for row in data.average])
    torch.testing.assert_close(last, torch.tensor(data.limit), rtol=0, atol=0.02)
    sums = torch.tensor(data.average).sum(dim=1)
    torch.testing.assert_close(sums, torch.ones_like(sums))
    assert len(draw_claim_cumulative(data).axes) == 3


def test_wrong_picks_by_hand() -> None:
    """P is nearly the cycle 0 -> 1 -> 2 -> 0, the sequence follows lag 1: scores by hand, transition by transition."""
    P = torch.tensor([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], dtype=torch.float64)
    task = sih.Task(P, lags=(1, 2), length=6)
    tokens = torch.tensor([[0, 2, 0, 1, 2, 0]])  # after (0, 2): 2->0 fits lag 1, then all fit lag 1
    for score in SCORES:
        right = wrong_lag.wrong_picks(sih.Batch(tokens, torch.tensor([1])), task, score)
        assert not right.any()
        assert wrong_lag.wrong_picks(sih.Batch(tokens, torch.tensor([2])), task, score).all()


def test_one_head_sees_every_other_transition_of_two_lags() -> None:
    P = torch.tensor([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], dtype=torch.float64)
    task = sih.Task(P, lags=(1, 2), length=6)
    tokens = torch.tensor([[0, 2, 1, 2, 1, 1]])
    p = torch.stack([P[tokens[0, 2 - r : 6 - r], tokens[0, 2:]] for r in (1, 2)], dim=-1)
    share = p / p.sum(dim=-1, keepdim=True)
    expected = [share[i] + (share[i - 2] if i >= 2 else 0) for i in range(4)]
    picks = [1 if e[0] >= e[1] - 1e-9 else 2 for e in expected]
    found = wrong_lag.wrong_picks(sih.Batch(tokens, torch.tensor([1])), task, "single head")[0]
    assert found.tolist() == [pick != 1 for pick in picks]


def test_wrong_lag_rates_are_as_predicted() -> None:
    settings = wrong_lag.WrongLagConfig(num_states=3, lags=(1, 2), length=42, blocks=4, sequences=2000)
    data = wrong_lag.compute(settings, RunStore())
    for score in SCORES:
        measured, error, predicted = data.measured[score][-1], data.measured_error[score][-1], data.predicted[score][-1]
        assert measured == pytest.approx(predicted, abs=5 * error + 0.15 * predicted)
        assert math.isfinite(data.fitted[score])
    assert data.exponent["ML"] >= data.exponent["estimator"] > data.exponent["single head"]
    assert len(draw_wrong_lag(data).axes[0].lines) >= 3
    assert [row[0] for row in wrong_lag.table(data)] == ["rule", *SCORES]


def test_beta() -> None:
    settings = beta.BetaConfig(num_states=3, lags=(1, 2), lengths=(8, 16), betas=(0.001, 1e6), matrices=2, sequences=40)
    data = beta.compute(settings, RunStore())
    for j in range(2):
        for kind in beta.EVIDENCES:
            assert data.selective[kind][j][1] == pytest.approx(data.limit[j], rel=1e-3, abs=1e-6)
            assert data.selective[kind][j][0] > data.bma[j]
    assert len(draw_beta(data).axes) == 2
    assert len(beta.table(data)) == 3


def test_figures_are_the_same_bytes_every_time(tmp_path: Path) -> None:
    data = claim_histogram.compute(claim_histogram.HistogramConfig(num_states=3, matrices=4, lags=LAGS), RunStore())
    first, second = (style.save(draw_claim_histogram(data), tmp_path / name / "figure") for name in "ab")
    for a, b in zip(first, second, strict=True):
        assert a.read_bytes() == b.read_bytes()
