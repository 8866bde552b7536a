"""The rank that the criterion prescribes, against matrices built by brute force."""

from __future__ import annotations

import itertools

import pytest
import torch

from sih.beyond.shared_heads.prescribed import prescribed_rank, rank_bound
from sih.heads.mixing import mixing_profile


def brute_force(lags: tuple[int, ...], offsets: tuple[int, ...]) -> int:
    """Take every w that annihilates what lags may share, found as zero-sum matrices, and the rank of its values."""
    differences = sorted({b - a for a in lags for b in lags})
    K, wide = len(lags), range(-30, 31)
    zero_sum = []
    for k, other in itertools.product(range(1, K), repeat=2):
        matrix = torch.zeros(K, K, dtype=torch.float64)
        matrix[0, 0], matrix[k, other], matrix[0, other], matrix[k, 0] = 1, 1, -1, -1
        zero_sum.append(matrix)
    # At one offset, w(o + x) is the sum of a matrix with zero row and column sums along its x-th diagonal.
    spaces = []
    for o in offsets:
        rows = torch.zeros(len(zero_sum), len(wide), dtype=torch.float64)
        for r, matrix in enumerate(zero_sum):
            for a, b in itertools.product(range(K), repeat=2):
                rows[r, wide.index(o + lags[b] - lags[a])] += matrix[a, b]
        spaces.append(rows)
    # The intersection of the spaces: what every orthogonal complement annihilates.
    complement = torch.cat([_null(space) for space in spaces])
    shared = _null(complement)
    assert all(w in [o + x for x in differences] for o in offsets for w in _support(shared, wide))
    return (
        int(torch.linalg.matrix_rank(shared[:, [wide.index(o) for o in offsets]], atol=1e-8))
        if len(shared)
        else 0
    )


def _null(rows: torch.Tensor) -> torch.Tensor:
    _, s, v = torch.linalg.svd(rows)
    rank = int((s > 1e-9).sum())
    return torch.as_tensor(v[rank:])


def _support(rows: torch.Tensor, wide: range) -> list[int]:
    return [n for i, n in enumerate(wide) if len(rows) and rows[:, i].abs().max() > 1e-8]


@pytest.mark.parametrize(
    ("lags", "offsets"),
    [
        ((1, 2), (0,)),
        ((1, 2, 3), (0, 1)),
        ((1, 2, 4), (0, 1)),
        ((1, 2, 4), (0, 1, 2)),
        ((1, 2, 3, 5), (0, 1, 2, 3)),
        ((1, 2, 5, 7), (0, 1, 3)),
        ((1, 2, 4, 8), (0, 1)),
        ((1, 2, 4, 8), (0, 2, 3)),
        ((1, 3, 4, 6), (0, 1, 2, 3)),
    ],
    ids=str,
)
def test_the_rank_is_that_of_brute_force(lags: tuple[int, ...], offsets: tuple[int, ...]) -> None:
    assert prescribed_rank([lag - lags[0] for lag in lags], offsets) == brute_force(lags, offsets)


def test_what_is_known_of_intervals_progressions_and_shared_differences() -> None:
    for count in range(2, 10):
        assert rank_bound(tuple(range(1, count + 1)), count - 1).heads == count - 1
    assert rank_bound((2, 5), 1).heads == 1
    assert rank_bound((3, 5, 7, 9), 3).offsets == (0, 2, 4)
    for lags in itertools.combinations(range(1, 8), 4):
        shared = max(
            sum(k + d in lags for k in lags) for d in range(1, 7)
        )  # pairs of lags with the same difference
        assert rank_bound(lags, 9).heads >= shared


def test_no_exact_circuit_has_fewer_heads_than_the_bound() -> None:
    """The matrix prescribed by a circuit at hand: its functions of n at w, times its weights, are w(o)."""
    lags = (1, 2, 3, 4)
    profile = mixing_profile(lags, 40)
    o = torch.arange(10, 10 + len(lags) - 1)
    g = profile.query[:, o[:, None] + torch.tensor([-1, 0, 1]) + profile.span]
    second = -(g[..., 0] - 2 * g[..., 1] + g[..., 2])  # head, index
    found = profile.weights[:, o].T @ second
    assert torch.allclose(
        found, 2 * torch.eye(3).double() - torch.eye(4)[1:, :3] - torch.eye(4)[:3, 1:], atol=1e-12
    )
