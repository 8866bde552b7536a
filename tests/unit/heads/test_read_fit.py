"""The least squares behind two-sided reads, against plain loops and dense algebra."""

import itertools

import pytest
import torch
from torch import Tensor

from sih.heads.read_fit import ReadProblem, fitted, orthogonal_to_ones, solve_blocks


def draw(*shape: int) -> Tensor:
    return torch.randn(
        shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64
    )


def matrices_by_loops(
    lags: tuple[int, ...], u: Tensor, query: dict[int, Tensor], key: dict[int, Tensor]
) -> Tensor:
    """F_o from the definition, one number at a time; reads by index."""
    out = torch.zeros(u.shape[1], len(lags), len(lags), dtype=torch.float64)
    for o in range(u.shape[1]):
        for a, k in enumerate(lags):
            for b, other in enumerate(lags):
                for h in range(len(u)):
                    out[o, a, b] += u[h, o] * query[o + other - k][h]
                    if o >= k - 1:
                        out[o, a, b] += u[h, o - k + 1] * key[o + other][h]
    return out


@pytest.mark.parametrize("lags", [(1, 2, 3), (2, 5), (1, 3, 4, 8)], ids=str)
def test_the_residual_is_that_of_the_definition(lags: tuple[int, ...]) -> None:
    problem = ReadProblem(lags, 2, torch.ones(9, dtype=torch.float64))
    weights, g = draw(2, 9).exp(), draw(2, 2, problem.size)
    by_index = [
        {n: g[side, :, n + problem.pad] for n in range(-problem.pad, 9 + lags[-1])}
        for side in (0, 1)
    ]
    F = matrices_by_loops(lags, weights, *by_index)
    count = len(lags)
    J = torch.eye(count, dtype=torch.float64) - 1 / count
    u = problem.widened(weights)
    assert (problem.matrices(u, g) - J @ F @ J).abs().max() < 1e-12
    squares = ((J @ F @ J - J) ** 2).sum(dim=(1, 2))
    assert (problem.residual(u, g).pow(2).sum(dim=1) - squares).abs().max() < 1e-11


def test_the_step_without_damping_finds_the_best_reads() -> None:
    """The normal equations, made dense by running the residual on unit vectors."""
    problem = ReadProblem((1, 3, 4), 1, torch.linspace(2.0, 1.0, 12, dtype=torch.float64))
    u, zero = (
        problem.widened(draw(1, 12).exp()),
        torch.zeros(2, 1, problem.size, dtype=torch.float64),
    )
    flat = zero.numel()
    units = torch.eye(flat, dtype=torch.float64).view(flat, 2, 1, problem.size)
    root = torch.linspace(2.0, 1.0, 12, dtype=torch.float64).sqrt()[:, None]
    none = problem.residual(u, zero) * root
    A = torch.stack([(problem.residual(u, unit) * root - none).flatten() for unit in units], dim=1)
    ridge = 1e-3
    best = torch.linalg.solve(
        A.T @ A + ridge * torch.eye(flat, dtype=torch.float64), -A.T @ none.flatten()
    )
    found = problem.step(u[None], zero[None], ridge, None)
    assert (found[1].flatten() - best).abs().max() < 1e-9


def test_steps_lead_down_and_the_best_comes_first() -> None:
    problem = ReadProblem((1, 2, 3), 1, torch.ones(20, dtype=torch.float64))
    weights = 1 + 0.5 * torch.cos(
        torch.tensor([[torch.pi], [1.0]], dtype=torch.float64)[..., None] * torch.arange(20)
    )
    costs = [fitted(problem, weights, None, steps, 1e-8)[2] for steps in (0, 5, 25)]
    assert all((after <= before).all() for before, after in itertools.pairwise(costs))
    assert costs[2][0] < 0.5 * costs[0][0]
    assert all(cost[0] <= cost[1] for cost in costs)


def test_a_block_tridiagonal_system_is_solved() -> None:
    blocks, size = 4, 3
    lower = torch.tril(draw(blocks * size, blocks * size)) * torch.eye(
        blocks, dtype=torch.float64
    ).repeat_interleave(size, 0).repeat_interleave(size, 1) + torch.kron(
        torch.diag(torch.ones(blocks - 1), -1).double(), draw(size, size)
    )
    A, right = lower @ lower.T + torch.eye(12, dtype=torch.float64), draw(12)
    cut = A.view(blocks, size, blocks, size).transpose(1, 2)
    diagonal = torch.stack([cut[n, n] for n in range(blocks)])[None]
    below = torch.stack([cut[n + 1, n] for n in range(blocks - 1)])[None]
    found = solve_blocks(diagonal, below, right.view(1, blocks, size))
    assert (found.flatten() - torch.linalg.solve(A, right)).abs().max() < 1e-10


@pytest.mark.parametrize("count", [2, 3, 7])
def test_the_basis_is_orthonormal_and_sums_to_nothing(count: int) -> None:
    basis = orthogonal_to_ones(count)
    assert (basis.T @ basis - torch.eye(count - 1, dtype=torch.float64)).abs().max() < 1e-14
    assert basis.sum(dim=0).abs().max() < 1e-14


def test_the_pulls_are_towards_small_reads_and_even_weights() -> None:
    problem = ReadProblem((1, 2, 3), 2, torch.ones(6, dtype=torch.float64))
    even, uneven = (
        torch.ones(1, 2, 6, dtype=torch.float64),
        torch.full((1, 2, 6), 2.0, dtype=torch.float64),
    )
    reads = torch.zeros(1, 2, 2, problem.size, dtype=torch.float64)

    def pulled(weights: Tensor, g: Tensor) -> float:
        u = problem.widened(weights)
        return (problem.cost(u, g, 1.0) - problem.cost(u, g, 0.0)).item()

    assert pulled(even, reads) == 0.0
    assert pulled(uneven, reads) > 0.0
    assert pulled(even, reads + 2.0) == pytest.approx(4.0 * reads.numel())
