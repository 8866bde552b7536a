"""The loss that knows no P, against plain loops, and descent on it."""

import math

import pytest
import torch

from sih.construction.heads.lag_loss import descended, evidence, excess_loss
from sih.construction.heads.read_fit import ReadProblem

J = torch.eye(3, dtype=torch.float64) - 1 / 3


def test_the_evidence_is_that_of_a_random_row() -> None:
    """Means 1/5 and 1/3 of Beta(1, 4) and Beta(2, 4), within five standard errors of 60,000 draws and more."""
    p, true = evidence(3, 200, 900, torch.Generator().manual_seed(0))
    own = p[torch.arange(900), :, true]
    assert abs(own.mean() - 1 / 3) < 5 * math.sqrt(2 / 63 / own.numel())
    assert abs((p.sum() - own.sum()) / (2 * own.numel()) - 1 / 5) < 5 * math.sqrt(2 / 75 / (2 * own.numel()))
    assert true.bincount().tolist() == [300, 300, 300]


def test_the_loss_is_the_one_of_the_mixture() -> None:
    p, true = evidence(3, 7, 4, torch.Generator().manual_seed(1))
    F = torch.randn(7, 3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    losses = []
    for row, lag in zip(p.tolist(), true.tolist(), strict=True):
        for n in range(6):
            scores = [0.0, 0.0, 0.0]
            for o in range(n + 1):
                logs = [math.log(x) for x in row[n - o]]
                for k in range(3):
                    scores[k] += sum(float(F[o, k, b]) * (logs[b] - sum(logs) / 3) for b in range(3))
            weights = [math.exp(s) for s in scores]
            law = sum(w * x for w, x in zip(weights, row[n + 1], strict=True)) / sum(weights)
            losses.append(math.log(row[n + 1][lag] / law))
    assert excess_loss(F, p, true).item() == pytest.approx(sum(losses) / len(losses), abs=1e-10)


def test_the_posterior_has_the_least_loss() -> None:
    p, true = evidence(3, 40, 3000, torch.Generator().manual_seed(3))
    best = excess_loss(J.expand(40, 3, 3), p, true)
    worse = [excess_loss(scale * J.expand(40, 3, 3), p, true) for scale in (0.5, 0.8, 1.25, 2.0)]
    assert all(best < loss for loss in worse)


def test_descent_lowers_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sih.construction.heads.lag_loss.STEPS", 40)
    problem = ReadProblem((1, 2, 3), 1, torch.ones(20, dtype=torch.float64))
    weights = torch.where(torch.arange(20) % 3 == 0, 1.0, 0.02).to(torch.float64)[None]
    g = torch.zeros(2, 1, problem.size, dtype=torch.float64)
    g[0, :, problem.here] = (weights > 0.5).to(torch.float64)
    p, true = evidence(3, 20, 600, torch.Generator().manual_seed(4))
    found = descended(problem, weights, g)
    before, after = (
        excess_loss(problem.matrices(problem.widened(u), reads), p, true) for u, reads in ((weights, g), found)
    )
    assert after < 0.95 * before
