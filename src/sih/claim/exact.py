r"""Exact expectations of Claim 1 (paper, Sec. 5.3), without sampling.

The module computes $\mathbb E[p_{i,r} / \sum_{l\in\mathcal K} p_{i,l}]$ for every true
lag k and every lag r.

With $p_{i,l} = P_{X_{i-l},X_i}$ and $1/x = \int_0^\infty e^{-tx}dt$ the expectation
under lag k is

$$\sum_s \int_0^\infty \mathbb E\Big[P_{X_{i-k},s} P_{X_{i-r},s} \prod_{l\in\mathcal K} e^{-tP_{X_{i-l},s}}\Big] dt.$$

The $X_{i-l}$ split by l mod k into independent stationary chains, in which neighbours
are a power of P apart. So for each (s, t) the expectation is a product of one
$\pi D M D M \cdots D 1$ per chain, D = diag(e^{-tP(., s)}).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from sih.base.errors import FieldError, check_number
from sih.claim.laplace import ReciprocalRule, reciprocal_rule
from sih.task import check_lags
from sih.task.matrices import (
    ROW_SUM_TOLERANCE,
    MatrixLike,
    as_squares,
    as_transition_matrix,
    stationary_distribution,
)

CHUNK = 2**19
"""Numbers in one array of the recursion. Matrices are processed in chunks of this size,
which fit the cache."""


@dataclass(frozen=True, eq=False)
class ClaimTable:
    r"""The expectations of Claim 1, each accurate to `error`.

    `expectations[..., k, r]` is $\mathbb E[p_r / \sum_l p_l]$ under the k-th lag.
    """

    lags: tuple[int, ...]
    expectations: Float[Tensor, "*matrix lag lag"]
    error: float

    @property
    def gaps(self) -> Float[Tensor, "*matrix lag lag"]:
        r"""Return $E_k - E_r$ for each true lag k and rival r, infinite at r = k, so
        that minima run over rivals.
        """
        own = self.expectations.diagonal(dim1=-2, dim2=-1)[..., None]
        itself = torch.eye(len(self.lags), dtype=torch.bool, device=own.device)
        return (own - self.expectations).masked_fill(itself, torch.inf)

    @property
    def margins(self) -> Float[Tensor, "*matrix lag"]:
        r"""Return the quantity of the paper's histogram (App. E),
        $E_k - \max_{r \ne k} E_r$.
        """
        return self.gaps.amin(dim=-1)

    @property
    def holds(self) -> bool:
        """Return whether no rival exceeds the true lag by more than the error of the
        two numbers.
        """
        return bool((self.margins >= -2 * self.error).all())


def claim_expectations(
    P: MatrixLike, lags: Sequence[int], *, tolerance: float = 1e-12
) -> Float[Tensor, "*matrix lag lag"]:
    r"""Return $\mathbb E[p_r / \sum_l p_l]$ of Claim 1 for each true lag k and each
    scored lag r.

    Args:
        P: One transition matrix or several, of shape (..., state, state).
        lags: Two or more lags.
        tolerance: The absolute error allowed, apart from rounding; `claim_table`
            returns the actual bound.

    Returns:
        Expectations of shape (..., lag, lag), at (..., k, r).

    >>> claim_expectations([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2))
    tensor([[0.5159, 0.4841],
            [0.4735, 0.5265]], dtype=torch.float64)
    """
    return claim_table(P, lags, tolerance=tolerance).expectations


def claim_table(P: MatrixLike, lags: Sequence[int], *, tolerance: float = 1e-12) -> ClaimTable:
    r"""Return the expectations for every matrix, with a bound on their absolute error:
    `tolerance`, plus rounding.

    The bound. The integral is a mixture of $c/x$ over the values x of the denominator,
    with $\sum c/x = \mathbb E[p_r/x] \le 1$, so a rule of relative error e for x in
    $[\delta, K]$ costs at most e there. The denominator is at least $p_k$, the
    probability of the transition that took place. It is below $\delta$ with probability
    at most $S\delta$, so smaller x cost at most $S\delta$ more. With $\delta$ =
    tolerance / 2S no entry of P is too small, and a zero entry needs no care: a
    transition of probability 0 has weight $p_k = 0$, so the denominator is positive
    almost surely and the 0/0 of an impossible window counts for nothing.
    """
    P, lags = _as_matrices(P), check_lags(lags)
    num_states = P.shape[-1]
    wanted = "an absolute error between 1e-13 and 0.1, e.g. 1e-12"
    check_number("tolerance", tolerance, 1e-13, wanted=wanted)
    if tolerance > 0.1:
        raise FieldError("tolerance", f"tolerance is {wanted}; got {tolerance:g}")
    least = tolerance / (2 * num_states)
    least_entry = P[P > 0].min().item()
    rule = reciprocal_rule(max(least, least_entry), float(len(lags)), tolerance / 2)
    cut = num_states * least if least_entry < least else 0.0
    rounding = 1e-15 * (10 + len(lags)) * (1 + num_states**0.5)
    flat = P.reshape(-1, num_states, num_states)
    many = max(1, CHUNK // (num_states**2 * len(rule.nodes)))
    parts = []
    for part in flat.split(many):
        integrand = Integrand(part, stationary_distribution(part), rule)
        parts.append(
            torch.stack([integrand.expectations(lags, k, weighted=k) for k in lags], dim=1)
        )
    return ClaimTable(
        lags,
        torch.cat(parts).reshape(*P.shape[:-2], len(lags), len(lags)),
        rule.error + cut + rounding,
    )


@dataclass(frozen=True)
class Chain:
    """The lags of one residue class modulo the true lag, oldest first, with the powers
    of P between neighbours.

    `steps[0]` counts from the first of the class's tokens at or after i - max_lag; a
    stationary start makes it idle.
    """

    lags: tuple[int, ...]
    steps: tuple[int, ...]


def chains(lags: Sequence[int], true_lag: int) -> list[Chain]:
    """Return the independent chains of the X_{i-l} under `true_lag`, first the one that
    ends in X_i.

    >>> chains((1, 2, 3, 5), 2)
    [Chain(lags=(2,), steps=(1,)), Chain(lags=(5, 3, 1), steps=(0, 1, 1))]
    """
    oldest = max(lags)
    found = []
    for residue in sorted({lag % true_lag for lag in lags}):
        members = sorted((lag for lag in lags if lag % true_lag == residue), reverse=True)
        steps = (
            (old - new) // true_lag for old, new in pairwise([oldest, *members])
        )  # the first is rounded down
        found.append(Chain(tuple(members), tuple(steps)))
    return found


class Integrand:
    """The expectations under the integral at every (s, t), chain by chain; equal chains
    are computed once.

    `start` is the distribution of each chain's first token, pi for the claim.
    Differentiable in P and start.
    """

    def __init__(
        self,
        P: Float[Tensor, "matrix state state"],
        start: Float[Tensor, "matrix state"],
        rule: ReciprocalRule,
        *,
        stationary: bool = True,
    ) -> None:
        matrices, num_states, _ = P.shape
        by_target = P.mT[:, :, None, :]  # (matrix, s, 1, x): P[x, s]
        nodes = rule.nodes.to(P.device)
        damp = torch.exp(-nodes[:, None] * by_target)  # (matrix, s, t, x)
        self.p = by_target.expand_as(damp).reshape(matrices, -1, num_states)  # (matrix, s t, x)
        self.damp = damp.reshape(matrices, -1, num_states)
        self.weights = rule.weights.to(P.device).repeat(num_states)  # (s t)
        self.P, self.start, self.stationary = P, start, stationary
        self._powers: dict[int, Tensor] = {1: P}
        self._chains: dict[
            tuple[tuple[int, ...], int | None, int], tuple[Tensor, list[Tensor]]
        ] = {}

    def expectations(
        self, lags: tuple[int, ...], true_lag: int, *, weighted: int | None, insert: int = 1
    ) -> Float[Tensor, "matrix lag"]:
        r"""Return $\sum_s \mathbb E[p_w\, p_r^{\text{insert}} / \sum_l p_l]$ for every
        lag r.

        w is the `weighted` lag, if any. In the claim it is the true lag, whose $p_k$ is
        the probability of the transition to s.
        """
        split = chains(lags, true_lag)
        links = [chain.lags.index(weighted) if weighted in chain.lags else None for chain in split]
        parts = [
            self._chain(chain.steps, link, insert) for chain, link in zip(split, links, strict=True)
        ]
        value: dict[int, Tensor] = {}
        for index, chain in enumerate(split):
            others = self.weights.expand_as(parts[0][0])
            for other, (total, _) in enumerate(parts):
                others = others * total if other != index else others  # a quotient could be 0/0
            for lag, inserted in zip(chain.lags, parts[index][1], strict=True):
                value[lag] = (others * inserted).sum(dim=-1)
        return torch.stack([value[lag] for lag in lags], dim=-1)

    def _chain(
        self, steps: tuple[int, ...], weighted: int | None, insert: int
    ) -> tuple[Tensor, list[Tensor]]:
        """Return pi D M D ... D 1, and the same with P(., s)^insert inserted at each
        link.

        The weighted link has an additional factor P(., s).
        """
        key = ((0, *steps[1:]) if self.stationary else steps, weighted, insert)
        if key not in self._chains:
            factors = [
                self.damp * self.p if link == weighted else self.damp for link in range(len(steps))
            ]
            first = self.start[:, None, :]
            forward = [(first @ self._power(key[0][0]) if key[0][0] else first) * factors[0]]
            for power, factor in zip(steps[1:], factors[1:], strict=True):
                forward.append((forward[-1] @ self._power(power)) * factor)
            total = forward[-1].sum(dim=-1)
            inserted = [(forward[-1] * self.p**insert).sum(dim=-1)]
            backward = factors[-1]
            for link in range(len(steps) - 2, -1, -1):
                carried = backward @ self._power(steps[link + 1]).mT
                inserted.append((forward[link] * self.p**insert * carried).sum(dim=-1))
                backward = carried * factors[link]
            self._chains[key] = total, inserted[::-1]
        return self._chains[key]

    def _power(self, exponent: int) -> Tensor:
        if exponent not in self._powers:
            self._powers[exponent] = torch.linalg.matrix_power(self.P, exponent)
        return self._powers[exponent]


def _as_matrices(value: MatrixLike) -> Float[Tensor, "*matrix state state"]:
    """Return the checked matrices; positive ones are checked all at once."""
    P = as_squares(value)
    sums = P.sum(dim=-1, keepdim=True)
    plain = ((P > 0).all(dim=(-2, -1))) & ((sums - 1).abs() <= ROW_SUM_TOLERANCE).all(dim=(-2, -1))
    for index in (~plain).nonzero().tolist():
        as_transition_matrix(
            P[tuple(index)]
        )  # zero entries: irreducible and aperiodic; or the error to raise
    return P / sums
