"""The criterion for heads that lags share, and the lower bounds on their number, from plain loops over F."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from sih.heads.mixing import mixing_profile

pytestmark = pytest.mark.slow

ROW = 30
LAG_SETS = [(1, 2), (1, 2, 3), (1, 3, 4), (2, 4, 6), (1, 2, 3, 4), (1, 2, 5, 6), (1, 4, 6, 9)]


def random_matrices(
    lags: tuple[int, ...], heads: int, seed: int
) -> tuple[dict[int, Tensor], Tensor, Tensor]:
    """Return F of each transition into row `ROW`, by the definition, with its weights and reads of any sign."""
    rng = torch.Generator().manual_seed(seed)
    W = torch.randn(heads, ROW + 1, generator=rng, dtype=torch.float64)
    B = torch.randn(heads, ROW + 1, ROW + 2, generator=rng, dtype=torch.float64)
    found = {}
    for i in range(lags[-1], ROW + 1):
        F = torch.zeros(len(lags), len(lags), dtype=torch.float64)
        for (a, k), (b, other) in itertools.product(enumerate(lags), repeat=2):
            for h in range(heads):
                F[a, b] += W[h, i] * B[h, i - other, ROW - k + 1]
        found[i] = F
    return found, W, B


def scores(lags: tuple[int, ...], W: Tensor, B: Tensor, q: Tensor) -> Tensor:
    """Return each lag's score of row `ROW`: what is stored by index, read at the lag's key."""
    stored = torch.zeros(len(W), ROW + 1, dtype=torch.float64)
    for h, i, (b, k) in itertools.product(range(len(W)), range(lags[-1], ROW + 1), enumerate(lags)):
        stored[h, i - k] += W[h, i] * q[i, b]
    return torch.stack([(stored * B[:, :, ROW - k + 1]).sum() for k in lags])


@pytest.mark.parametrize("lags", LAG_SETS)
def test_scores_are_sums_of_the_matrices(lags: tuple[int, ...]) -> None:
    matrices, W, B = random_matrices(lags, 2, seed=1)
    q = torch.randn(ROW + 1, len(lags), dtype=torch.float64)
    q -= q.mean(dim=1, keepdim=True)
    wanted = sum(F @ q[i] for i, F in matrices.items())
    assert torch.allclose(scores(lags, W, B, q), torch.as_tensor(wanted), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_criterion_is_the_evidence(count: int) -> None:
    """The closed form meets it, and its scores are the evidence; a weight changed in one place spoils both."""
    lags = tuple(range(1, count + 1))
    profile = mixing_profile(lags, ROW + 1)
    o = torch.arange(ROW + 1 - count)
    J = torch.eye(count, dtype=torch.float64) - 1 / count
    for changed in (0.0, 0.1):
        W = torch.zeros(profile.heads, ROW + 1, dtype=torch.float64)
        W[:, ROW - o] = profile.weights
        W[-1, ROW - 3] += changed
        B = torch.zeros(profile.heads, ROW + 1, ROW + 2, dtype=torch.float64)
        for m, k in itertools.product(range(ROW + 1), lags):
            n = ROW - m - k  # g_h(n), from n = -span on
            if 0 <= n + profile.span < profile.query.shape[1]:
                B[:, m, ROW - k + 1] = profile.query[:, n + profile.span]
        q = torch.randn(ROW + 1, count, generator=torch.Generator().manual_seed(0), dtype=W.dtype)
        q = q @ J
        evidence = q[count:].sum(dim=0)
        error = float((J @ (scores(lags, W, B, q) - evidence)).abs().max())
        assert (error < 1e-9) == (changed == 0), error


@pytest.mark.parametrize(
    ("lags", "exact"), [((1, 2), True), ((1, 2, 3), False), ((1, 3, 4), False)]
)
def test_one_head_is_exact_for_two_lags_only(lags: tuple[int, ...], exact: bool) -> None:
    """For given weights, reads are a linear problem: the best of them leave a defect iff there are three lags."""
    K = len(lags)
    J = torch.eye(K, dtype=torch.float64) - 1 / K
    for seed, uniform in ((0, True), (1, False), (2, False)):
        rng = torch.Generator().manual_seed(seed)
        W = torch.rand(ROW + 1, generator=rng, dtype=torch.float64) + 0.2
        W = torch.ones_like(W) if uniform else W
        keys = {k: number for number, k in enumerate(lags)}
        columns = K * (ROW + 1)
        rows, wanted = [], []
        for i in range(lags[-1], ROW + 1):
            A = torch.zeros(K, K, columns, dtype=torch.float64)
            for (a, k), (b, other) in itertools.product(enumerate(lags), repeat=2):
                A[a, b, keys[k] * (ROW + 1) + i - other] = W[i]
            rows.append(torch.einsum("ka,abc,bl->klc", J, A, J).reshape(K * K, columns))
            wanted.append(J.reshape(-1))
        A, y = torch.cat(rows), torch.cat(wanted)
        best = torch.linalg.lstsq(A, y, driver="gelsd").solution
        assert (float((A @ best - y).norm()) < 1e-7) == exact


@pytest.mark.parametrize("lags", LAG_SETS)
@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_combination_has_the_rank_of_the_heads_at_most(
    lags: tuple[int, ...], heads: int
) -> None:
    matrices, _, _ = random_matrices(lags, heads, seed=heads)
    K, m = len(lags), 12
    E = torch.eye(K, dtype=torch.float64)
    for delta in range(1, lags[-1]):
        starts = [k for k in lags if k + delta in lags]
        if not starts:
            continue

        def combination(F: Tensor, k: int, start: int, step: int = delta) -> float:
            b, c = lags.index(start), lags.index(start + step)
            return float(F[k, b] - F[k, c] - F[0, b] + F[0, c])

        found = torch.tensor(
            [[combination(matrices[m + s], k, s) for s in starts] for k in range(K)],
            dtype=torch.float64,
        )
        wanted = torch.tensor([[combination(E, k, s) for s in starts] for k in range(K)])
        assert int(torch.linalg.matrix_rank(found, atol=1e-9)) <= heads
        assert int(torch.linalg.matrix_rank(wanted)) == len(starts)
