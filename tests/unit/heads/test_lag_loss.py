"""KL over that of Bayes on fresh matrices, against plain loops, and descent on it."""

import math

import pytest
import torch

import sih
from sih.heads.lag_loss import SHARED, Fresh, _curve, descended, draw_fresh, fresh_kl
from sih.heads.read_fit import ReadProblem

J = torch.eye(3, dtype=torch.float64) - 1 / 3


def kl_by_loops(scores: list[list[float]], laws: list[list[list[float]]], true: int) -> float:
    """Mean KL over positions; scores by position and lag, laws by lag, state and position."""
    total = 0.0
    for i, row in enumerate(scores):
        weights = [math.exp(s - max(row)) for s in row]
        for state in range(len(laws[0])):
            law = sum(w * laws[k][state][i] for k, w in enumerate(weights)) / sum(weights)
            total += laws[true][state][i] * math.log(laws[true][state][i] / law)
    return total / len(scores)


def evidence_of(fresh: Fresh) -> torch.Tensor:
    parts, count = fresh.spectrum.permute(1, 2, 0), fresh.laws.shape[1]
    padded: torch.Tensor = torch.fft.irfft(torch.complex(parts[:, :count], parts[:, count:]))
    return padded[..., : fresh.laws.shape[-1]]


def true_of(fresh: Fresh) -> torch.Tensor:
    return (fresh.laws == fresh.own[:, None]).all(dim=(2, 3)).int().argmax(dim=1)


def test_the_loss_is_kl_over_that_of_bayes() -> None:
    fresh = draw_fresh((1, 2, 4), 10, SHARED, torch.Generator().manual_seed(1))
    F = torch.randn(6, 3, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found, best = [], []
    for q, laws, true in zip(
        evidence_of(fresh).tolist(), fresh.laws.tolist(), true_of(fresh).tolist(), strict=True
    ):
        mixed = [
            [
                sum(float(F[o, k, b]) * q[b][i - o] for o in range(i + 1) for b in range(3))
                for k in range(3)
            ]
            for i in range(6)
        ]
        added = [[sum(q[k][: i + 1]) for k in range(3)] for i in range(6)]
        found.append(kl_by_loops(mixed, laws, true))
        best.append(kl_by_loops(added, laws, true))
    assert fresh.bayes.tolist() == pytest.approx([sum(best) / SHARED] * SHARED, rel=1e-9)
    assert fresh_kl(F, fresh).item() == pytest.approx(sum(found) / sum(best), rel=1e-9)
    light = draw_fresh((1, 2, 4), 10, SHARED, torch.Generator().manual_seed(1), torch.float32)
    assert fresh_kl(F, light).item() == pytest.approx(sum(found) / sum(best), rel=1e-4)


def test_every_matrix_counts_alike() -> None:
    """Each sequence is divided by the mean of Bayes over those of its own matrix, in whatever order they come."""
    fresh = draw_fresh((1, 2, 4), 30, 5 * SHARED, torch.Generator().manual_seed(1))
    divisors, counts = fresh.bayes.unique(return_counts=True)
    assert counts.tolist() == [SHARED] * 5
    assert divisors.mean().item() == pytest.approx(fresh.bayes.mean().item())
    assert fresh.bayes[:SHARED].unique().numel() > 1


def test_fresh_sequences_are_of_tasks() -> None:
    """The law of the true lag gives the next token's evidence, and Bayes' KL is the one `sih.bma` has on the task."""
    lags, length = (1, 2, 3), 24
    fresh = draw_fresh(lags, length, 150 * SHARED, torch.Generator().manual_seed(0))
    assert true_of(fresh).bincount().tolist() == [50 * SHARED] * 3
    assert torch.allclose(fresh.laws.sum(dim=2), torch.ones(()).double())
    assert evidence_of(fresh).sum(dim=1).abs().max() < 1e-12
    ratios, rng = [], torch.Generator().manual_seed(1)
    for _ in range(40):
        task = sih.Task(sih.random_transition_matrix(5, rng=rng), lags, length)
        batch = sih.sample(task, 40, rng=rng)
        ratios.append(
            sih.kl_to_truth(sih.bma(batch.tokens, task), batch, task)[:, 3:].mean().item()
        )
    mean, error = torch.tensor(ratios).mean().item(), torch.tensor(ratios).std().item() / 40**0.5
    assert abs(fresh.bayes.mean().item() - mean) < 5 * error


def test_the_posterior_has_the_least_loss() -> None:
    fresh = draw_fresh((1, 2, 3), 40, 1000, torch.Generator().manual_seed(3))
    assert fresh_kl(J.expand(37, 3, 3), fresh).item() == pytest.approx(1, abs=1e-9)
    assert all(fresh_kl(scale * J.expand(37, 3, 3), fresh) > 1 for scale in (0.5, 0.8, 1.25, 2.0))


def test_descent_lowers_the_loss_on_other_matrices() -> None:
    problem = ReadProblem((1, 2, 3), 1, torch.ones(20, dtype=torch.float64))
    weights = torch.where(torch.arange(20) % 3 == 0, 1.0, 0.02).to(torch.float64)[None]
    g = torch.zeros(2, 1, problem.size, dtype=torch.float64)
    g[0, :, problem.here] = (weights > 0.5).to(torch.float64)
    drawn = draw_fresh((1, 2, 3), 23, 1000, torch.Generator().manual_seed(0), torch.float32)
    fresh = draw_fresh((1, 2, 3), 23, 600, torch.Generator().manual_seed(4))
    found = descended(problem, weights, g, drawn, 25)
    before, after = (
        fresh_kl(problem.matrices(problem.widened(u), reads), fresh)
        for u, reads in ((weights, g), found)
    )
    assert after < 0.97 * before
    again = descended(problem, weights, g, drawn, 25)
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))


def test_curvature_is_second_differences() -> None:
    curvature = torch.randn(2, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    curve = _curve(curvature)
    assert torch.allclose(curve[:, 2:] - 2 * curve[:, 1:-1] + curve[:, :-2], curvature[:, 2:])
    assert curve[:, 14].tolist() == pytest.approx(curve[:, 15].tolist())
    assert curve[:, 15].tolist() == [0, 0]
