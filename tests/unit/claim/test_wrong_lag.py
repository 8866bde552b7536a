from __future__ import annotations

import math

import pytest
import torch

import sih
from sih.claim import wrong_lag, wrong_lag_figure
from sih.claim.rates import SCORES
from sih.training.runs.run_store import RunStore


def test_wrong_picks_by_hand() -> None:
    """P is nearly the cycle 0 -> 1 -> 2 -> 0, the sequence follows lag 1: scores by hand, transition by transition."""
    P = torch.tensor([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], dtype=torch.float64)
    task = sih.Task(P, lags=(1, 2), length=6)
    tokens = torch.tensor([[0, 2, 0, 1, 2, 0]])  # after (0, 2): 2->0 fits lag 1, then all fit lag 1
    right, wrong = (
        wrong_lag.wrong_picks(sih.Batch(tokens, torch.tensor([lag])), task) for lag in (1, 2)
    )
    assert set(right) == set(SCORES)
    assert not any(picks.any() for picks in right.values())
    assert all(picks.all() for picks in wrong.values())


def test_one_head_sees_every_other_transition_of_two_lags() -> None:
    P = torch.tensor([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]], dtype=torch.float64)
    task = sih.Task(P, lags=(1, 2), length=6)
    tokens = torch.tensor([[0, 2, 1, 2, 1, 1]])
    p = torch.stack([P[tokens[0, 2 - r : 6 - r], tokens[0, 2:]] for r in (1, 2)], dim=-1)
    share = p / p.sum(dim=-1, keepdim=True)
    expected = [share[i] + (share[i - 2] if i >= 2 else 0) for i in range(4)]
    picks = [1 if e[0] >= e[1] - 1e-9 else 2 for e in expected]
    found = wrong_lag.wrong_picks(sih.Batch(tokens, torch.tensor([1])), task)["single head"][0]
    assert found.tolist() == [pick != 1 for pick in picks]


def test_an_exponent_is_fitted_to_rates_over_the_root_of_n() -> None:
    n = torch.arange(2, 202, 2)
    exact = 0.3 * torch.exp(-0.02 * n) / n.sqrt()
    same, error = wrong_lag._fit(n, exact.expand(4, -1).double(), 10**6)
    assert same == pytest.approx(0.02)
    assert error == pytest.approx(0, abs=1e-9)
    blocks = torch.stack(
        [0.3 * torch.exp(-slope * n) / n.sqrt() for slope in (0.01, 0.03)]
    ).double()
    _, error = wrong_lag._fit(n, blocks, 10**6)
    assert error == pytest.approx(0.01)  # slopes .01 and .03: their spread over the root of two


def test_wrong_lag_rates_are_as_predicted() -> None:
    settings = wrong_lag.WrongLagConfig(
        num_states=3, lags=(1, 2), length=42, blocks=4, sequences=2000
    )
    data = wrong_lag.compute(settings, RunStore())
    for score in SCORES:
        measured, error, predicted = (
            data.measured[score][-1].item(),
            data.measured_error[score][-1].item(),
            data.predicted[score][-1].item(),
        )
        assert measured == pytest.approx(predicted, abs=5 * error + 0.15 * predicted)
        assert math.isfinite(data.fitted[score])
    assert data.exponent["ML"] >= data.exponent["estimator"] > data.exponent["single head"]
    assert len(wrong_lag_figure.draw(data).axes[0].lines) >= 3
    assert [row[0] for row in wrong_lag_figure.table(data)] == ["rule", *SCORES]
