r"""Search for counterexamples to Claim 1 by gradient descent on the normalised gap,
from many matrices at once.

For X of true lag k and a rival r, with $p_l = P_{X_{i-l},s}$ summed over all s (not
weighted by the transition),

$$\rho_r = \frac{E_k - E_r}{\sum_s \mathbb E[(p_k - p_r)^2 / \sum_l p_l]}, \qquad
  E_k - E_r = \sum_s \mathbb E[p_k (p_k - p_r) / \textstyle\sum_l p_l].$$

The division keeps a descent from collapsing to equal rows, where the gap is
trivially 0. The denominator is $F_k - 2E_r + F_r$ with
$F_r = \sum_s \mathbb E[p_r^2/\sum_l p_l]$ (and $F_k = E_k$), so it costs one more pass.
Claim 1 says $\rho_r \ge 0$; it is exactly 1/2 for two lags (Lemma 1).
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.claim.exact import Integrand
from sih.claim.laplace import ReciprocalRule, reciprocal_rule
from sih.claim.search_starts import FAMILIES, LOGIT_BOUND, starting_logits
from sih.task import check_lags
from sih.task.matrices import stationary_distribution

Matrices = Float[Tensor, "matrix state state"]
LEAST_NORMALISER = 1e-4
"""Descents are kept if the denominator is at least this, so that the ratio keeps its
digits."""


@dataclass(frozen=True)
class SearchedClaim:
    """The statement that `favoured` has the largest expectation when `true_lag`
    generated the sequence.

    In Claim 1 the two are equal. Any other `favoured` is compared with the true lag
    only: a false statement, which tests the search. If `stationary` is false, the
    search includes the distribution of each chain's first token, at or after i -
    max_lag. `against` names the rivals, by default all.
    """

    lags: tuple[int, ...]
    true_lag: int
    favoured: int | None = None
    stationary: bool = True
    against: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if len(check_lags(self.lags)) < 2:
            raise ValueError(f"a comparison needs at least 2 lags, e.g. (1, 2, 3); got {self.lags}")
        for lag in (self.true_lag, self.favoured or self.true_lag, *(self.against or ())):
            if lag not in self.lags:
                raise ValueError(f"lag {lag} is not one of the lags {self.lags}")

    @property
    def rivals(self) -> tuple[int, ...]:
        if (self.favoured or self.true_lag) != self.true_lag:
            return (self.true_lag,)
        return self.against or tuple(lag for lag in self.lags if lag != self.true_lag)


@dataclass(frozen=True, eq=False)
class Gaps:
    """The two parts of the normalised gap, for each matrix and each rival of a claim."""

    gap: Float[Tensor, "matrix rival"]
    normaliser: Float[Tensor, "matrix rival"]

    @property
    def ratio(self) -> Float[Tensor, "matrix rival"]:
        return self.gap / self.normaliser


@dataclass(frozen=True, eq=False)
class Descents:
    """Ends of descents, the worst first, each with its rival of least ratio, recomputed
    to 1e-13.
    """

    claim: SearchedClaim
    P: Float[Tensor, "descent state state"]
    start: Float[Tensor, "descent state"]
    rival: Int[Tensor, " descent"]
    gap: Float[Tensor, " descent"]
    ratio: Float[Tensor, " descent"]
    error: float

    @property
    def violations(self) -> int:
        return int((self.gap < -2 * self.error).sum())


def normalised_gaps(
    P: Matrices, claim: SearchedClaim, start: Float[Tensor, "matrix state"], rule: ReciprocalRule
) -> Gaps:
    """Return gap and normaliser for each rival, differentiable in P and start (pi in
    the claim).
    """
    integrand = Integrand(P, start, rule, stationary=claim.stationary)
    cross = integrand.expectations(claim.lags, claim.true_lag, weighted=claim.true_lag)
    square = integrand.expectations(claim.lags, claim.true_lag, weighted=None, insert=2)
    own = claim.lags.index(claim.favoured or claim.true_lag)
    against = [claim.lags.index(r) for r in claim.rivals]
    # One of favoured and rival is the true lag, so E[p_favoured p_rival / sum] is `cross` at the other of the two.
    both = cross[:, against] if claim.lags[own] == claim.true_lag else cross[:, [own]]
    return Gaps(
        cross[:, [own]] - cross[:, against], square[:, [own]] - 2 * both + square[:, against]
    )


def stationary_by_solving(P: Matrices) -> Float[Tensor, "matrix state"]:
    r"""Return the stationary distribution by solving
    $\pi^\top(I - P + 11^\top) = 1^\top$, which has a gradient.

    Elimination in place would have none.
    """
    ones = torch.ones_like(P)
    system = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device) - P + ones
    pi: Tensor = torch.linalg.solve(system.mT, ones[..., :1])[..., 0].clamp_min(0)
    return pi / pi.sum(dim=-1, keepdim=True)


def descend(
    claim: SearchedClaim,
    num_states: int,
    *,
    starts: int,
    steps: int,
    rng: torch.Generator,
    learning_rate: float = 0.3,
    begin: str = "random",
    family: str = "any",
) -> Descents:
    """Return the ends of Adam's descents on the logits of `starts` matrices, each on
    the least ratio over its rivals.
    """
    matrices = FAMILIES[family]
    if num_states < 2 or starts < 1 or steps < 1:
        raise ValueError(
            f"at least 2 states, 1 start and 1 step are needed; got {num_states}, {starts} and {steps}"
        )
    logits = starting_logits(begin, starts, num_states, rng).requires_grad_()
    start_logits = torch.zeros(starts, num_states, dtype=torch.float64, requires_grad=True)
    rule = reciprocal_rule(1e-9, float(len(claim.lags)), 1e-8)
    optimiser = torch.optim.Adam([logits, start_logits], lr=learning_rate, betas=(0.9, 0.98))
    best_value = torch.full((starts,), torch.inf, dtype=torch.float64)
    best = logits.detach().clone(), start_logits.detach().clone()
    for step in range(steps):
        P = matrices(logits)
        start = stationary_by_solving(P) if claim.stationary else start_logits.softmax(dim=-1)
        gaps = normalised_gaps(P, claim, start, rule)
        too_small = torch.relu(math.log(LEAST_NORMALISER) - gaps.normaliser.clamp_min(1e-300).log())
        value = (gaps.gap / gaps.normaliser.clamp_min(1e-12) + too_small).amin(dim=-1)
        with torch.no_grad():
            better = value < best_value
            best_value = torch.where(better, value, best_value)
            best[0][better], best[1][better] = logits[better], start_logits[better]
        optimiser.zero_grad()
        value.sum().backward()
        optimiser.param_groups[0]["lr"] = learning_rate * (0.02 + 0.98 * (1 - step / steps))
        optimiser.step()
        with torch.no_grad():
            for parameter in (logits, start_logits):
                parameter -= parameter.mean(dim=-1, keepdim=True)
                parameter.clamp_(-LOGIT_BOUND, LOGIT_BOUND)
    return evaluate(claim, matrices(best[0]), None if claim.stationary else best[1].softmax(-1))


def evaluate(
    claim: SearchedClaim, P: Matrices, start: Float[Tensor, "matrix state"] | None = None
) -> Descents:
    """Return the least ratio at each matrix to 1e-13, with matrices of too small a
    normaliser last.
    """
    rule = reciprocal_rule(1e-14 / P.shape[-1], float(len(claim.lags)), 1e-13)
    first = (
        stationary_distribution(P) if start is None else start
    )  # by elimination: exact for slow chains too
    gaps = normalised_gaps(P, claim, first, rule)
    ratio, which = gaps.ratio.masked_fill(gaps.normaliser < LEAST_NORMALISER / 2, torch.inf).min(
        dim=-1
    )
    order = ratio.argsort()
    gap, rivals = gaps.gap.gather(1, which[:, None])[:, 0], torch.tensor(claim.rivals)[which]
    error = (
        rule.error + 1e-14 + 1e-15 * (10 + len(claim.lags)) * (1 + P.shape[-1] ** 0.5)
    )  # see claim_table
    return Descents(claim, P[order], first[order], rivals[order], gap[order], ratio[order], error)
