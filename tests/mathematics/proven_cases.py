"""Both sides of what docs/proofs/any_chain.md proves, to be compared by the tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sih.claim.exact import Integrand, chains
from sih.claim.laplace import reciprocal_rule
from sih.task import check_lags
from sih.task.matrices import stationary_distribution


def two_lag_sides(
    p: Float[Tensor, "*batch state"], q: Float[Tensor, "*batch state"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    r"""Lemma 1 (App. A): $\sum_s pq/(p+q) \le \sum_s p^2/(p+q)$ for any two laws; 0/0 counts for nothing.

    Their difference is $\tfrac12 \sum_s (p-q)^2/(p+q)$.
    """
    total = p + q
    safe = torch.where(total > 0, total, 1.0)
    return (p * q / safe).sum(dim=-1), (p * p / safe).sum(dim=-1)


def unnormalised_expectations(
    P: Float[Tensor, "*matrix state state"], lags: Sequence[int]
) -> Float[Tensor, "*matrix lag lag"]:
    r"""Lemma 2 (App. A): $\mathbb E[p_{i,r}]$ under each true lag k; the true lag's is the largest.

    For r in the chain of X_i, m steps before X_{i-k}: $\sum_{x,y} \pi_x (P^m)_{xy} (PP^\top)_{xy}$. Otherwise X_{i-r}
    is independent of X_i: $\sum_s \pi_s^2$.
    """
    lags = check_lags(lags)
    pi = stationary_distribution(P)
    overlap = P @ P.mT

    def entry(k: int, r: int) -> Tensor:
        if r % k:
            return (pi**2).sum(dim=-1)
        weight: Tensor = pi[..., None] * torch.linalg.matrix_power(P, (r - k) // k)
        return (weight * overlap).sum(dim=(-2, -1))

    return torch.stack([torch.stack([entry(k, r) for r in lags], dim=-1) for k in lags], dim=-2)


def are_independent(lags: Sequence[int], true_lag: int) -> bool:
    """Whether the X_{i-l} are independent under the true lag: no two lags differ by a multiple of it.

    >>> are_independent((1, 2, 3), 3), are_independent((1, 2, 3), 2)
    (True, False)
    """
    return all(len(chain.lags) == 1 for chain in chains(check_lags(lags), true_lag))


def two_rows_ratio(num_lags: int, like_true: int) -> float:
    """Gap over normaliser of a window with two rows, `like_true` of its `num_lags` rows being the true lag's."""
    return (num_lags - like_true) / num_lags


def betweenness(
    P: Float[Tensor, "matrix state state"], lags: Sequence[int], true_lag: int
) -> Float[Tensor, "matrix lag lag"]:
    r"""$B_{rl} = \sum_s \mathbb E[(p_k - p_r)(p_k - p_l)/\sum_{l'} p_{l'}]$ for every pair of lags, to 1e-12.

    With $F_{rl} = \sum_s \mathbb E[p_r p_l / \sum p]$ it is $F_{kk} - F_{kr} - F_{kl} + F_{rl}$; $B_{rr}$ is N.
    """
    lags = check_lags(lags)
    rule = reciprocal_rule(1e-13 / P.shape[-1], float(len(lags)), 1e-13)
    integrand = Integrand(P, stationary_distribution(P), rule)
    F = torch.stack([integrand.expectations(lags, true_lag, weighted=lag) for lag in lags], dim=-2)
    k = lags.index(true_lag)
    return F[:, k, k, None, None] - F[:, k, :, None] - F[:, None, k, :] + F
