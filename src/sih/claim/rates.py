r"""The probability of picking the wrong lag after n transitions, by large deviations,
without sampling.

A rule keeps a running score for each lag and picks the largest: the log-likelihood
(ML), the sum of $\tilde p$ (the paper's estimator, the limit of large beta), or the sum
of every K-th $\tilde p$ (one second-layer head, Sec. 5.4). Under true lag k the window
$w = (X_{i-\hat k}, .., X_{i-1})$ is a Markov chain, and the lead of a rival r is a sum
of increments d(w, s) along it. With the tilted operator
$(L_\theta v)(w) = \sum_s P_{x_k,s}\,e^{\theta d(w,s)}\,v(w')$,

$$\Pr(\text{lead of r} \ge 0) = e^{-n I + o(n)}, \qquad I = -\min_{\theta \ge 0} \log \varrho(L_\theta),$$

$\varrho$ the Perron root (Gärtner-Ellis). The moment generating function
$M_n(\theta) = \mu L_\theta^n 1$ is exact for every n, and its saddle point gives the
probability itself (Lugannani and Rice).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.task import Task

Score = Literal["ML", "estimator", "single head"]
SCORES: tuple[Score, ...] = ("ML", "estimator", "single head")
WINDOW_LIMIT = 2**16
"""Largest number of windows S ** max_lag for which the Perron root is computed."""
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Lead:
    """The chain of windows under a true lag: each next token's distribution, and the
    rival's gain from it.

    Windows count in base S, the oldest token first: (oldest, rest) and the next token
    lead to (rest, next).
    """

    law: Float[Tensor, "window state"]
    gain: Float[Tensor, "window state"]
    start: Float[Tensor, " window"]
    every: int
    """The gain counts once per this number of transitions."""

    def tilted(self, theta: Float[Tensor, " n"], order: int = 0) -> Float[Tensor, "window state n"]:
        r"""Return $P_{x_k,s}\, d^{\text{order}} e^{\theta d}$, or 0 if d is minus
        infinity: the rival is excluded.
        """
        finite = torch.isfinite(self.gain)
        gain = torch.where(finite, self.gain, 0.0)
        return torch.where(finite, self.law * gain**order, 0.0)[..., None] * torch.exp(
            gain[..., None] * theta
        )


def _sum_next(
    weights: Float[Tensor, "window state n"], v: Float[Tensor, "window n"]
) -> Float[Tensor, "window n"]:
    """Return the weighted sum of v over the successors of each window."""
    S = weights.shape[1]
    followed: Tensor = weights.unflatten(0, (S, -1)) * v.unflatten(0, (-1, S))
    return followed.sum(dim=2).flatten(0, 1)


def lead(task: Task, true_lag: int, rival: int, score: Score) -> Lead:
    """Return a rival's lead under a rule, from a first window of independent tokens."""
    if true_lag == rival or not {true_lag, rival} <= set(task.lags):
        raise ValueError(
            f"true lag and rival are two of the lags {task.lags}; got {true_lag} and {rival}"
        )
    S, depth = task.num_states, task.max_lag
    if S**depth > WINDOW_LIMIT:
        raise ValueError(
            f"rates are exact for at most {WINDOW_LIMIT} windows of max_lag tokens; {S} states and max_lag {depth} "
            f"have {S**depth}; try fewer states or smaller lags"
        )
    window = torch.arange(S**depth)
    digits = torch.stack(
        [window // S ** (lag - 1) % S for lag in range(1, depth + 1)]
    )  # [lag - 1]: X_{i-lag}
    p = {lag: task.P[digits[lag - 1]] for lag in task.lags}  # (window, state)
    if score == "ML":
        gain = torch.where(p[true_lag] > 0, p[rival].log() - p[true_lag].log(), 0.0)
    else:
        total = torch.stack(list(p.values())).sum(dim=0)
        gain = torch.where(total > 0, (p[rival] - p[true_lag]) / total, 0.0)
    start = task.stationary[digits].prod(dim=0)
    return Lead(p[true_lag], gain, start, len(task.lags) if score == "single head" else 1)


def exponent(task: Task, true_lag: int, rival: int, score: Score) -> float:
    """Return I, above, in nats per transition.

    It is 0 for a rival that is not behind on average, and infinite for one that cannot
    catch up.
    """
    chain = lead(task, true_lag, rival, score)
    low, high = (
        0.0,
        1.0,
    )  # log rho is convex and 0 at 0: find a bracket of its minimum, then narrow it
    while (value := _log_root(chain, 2 * high)) < _log_root(chain, high):
        if value < -700 or high > 1e5:
            return math.inf
        low, high = high, 2 * high
    high *= 2
    inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_inner, at_outer = _log_root(chain, inner), _log_root(chain, outer)
    for _ in range(
        36
    ):  # golden sections to 3e-8 of the bracket, which is 1e-15 of the value at a smooth minimum
        if at_inner <= at_outer:
            high, outer, at_outer = outer, inner, at_inner
            inner = high - GOLDEN * (high - low)
            at_inner = _log_root(chain, inner)
        else:
            low, inner, at_inner = inner, outer, at_outer
            outer = low + GOLDEN * (high - low)
            at_outer = _log_root(chain, outer)
    return max(0.0, -min(at_inner, at_outer) / chain.every)


def error_exponent(task: Task, score: Score) -> float:
    """Return the exponent of picking the wrong lag: that of the worst pair of true lag
    and rival.
    """
    return min(exponent(task, k, r, score) for k in task.lags for r in task.lags if r != k)


def overtaking_probabilities(chain: Lead, transitions: Sequence[int]) -> Float[Tensor, " n"]:
    r"""Return approximations of Pr(lead >= 0 after n transitions) for each n, by the
    saddle point of $\log M_n$.

    With $\hat\theta$ where its slope is 0,
    $w^2 = 2 (\log M_n(0) - \log M_n(\hat\theta))$ and
    $u^2 = \hat\theta^2 (\log M_n)''(\hat\theta)$, both of the sign of $\hat\theta$, it
    is $1 - \Phi(w) + \varphi(w) (1/u - 1/w)$ (Lugannani and Rice). Its relative error
    falls as 1/n, except for gains on a lattice, where ties have weight. M_n(0) is the
    probability that no transition has excluded the rival; the rest is conditional on
    that.
    """
    if not transitions or min(transitions) < 1:
        raise ValueError(
            f"transitions are a list of numbers of 1 or more; got {list(transitions)}; try [10, 20]"
        )
    at_once = max(1, WINDOW_LIMIT // len(chain.law))
    return torch.cat([_saddle_points(chain, n) for n in torch.tensor(transitions).split(at_once)])


def _saddle_points(chain: Lead, n: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Return each n's saddle point on its side of 0, and the probability there."""
    log_alive, slope, curvature = _log_moments(chain, torch.zeros(len(n), dtype=chain.law.dtype), n)
    alive, even = log_alive.exp(), slope.abs() <= 1e-9 * curvature.clamp_min(0.0).sqrt()
    side = -slope.sign()
    largest = (
        300 / chain.gain[torch.isfinite(chain.gain)].abs().max()
    ).item()  # beyond it exp overflows
    low, high = torch.zeros_like(alive), torch.full_like(alive, min(1.0, largest))
    while True:
        value, slope, _ = _log_moments(chain, side * high, n)
        short = side * slope < 0
        if not (short & (high < largest)).any():
            break
        high = torch.where(short, (2 * high).clamp_max(largest), high)
    # If the slope never changes sign the lead is never above 0, and M_n tends to the probability that it is 0.
    never, tied = short, value.exp()
    theta = high / 2
    for _ in range(
        60
    ):  # log M_n is convex: Newton's method on its slope, with bisection if that leaves the bracket
        value, slope, curvature = _log_moments(chain, side * theta, n)
        moving = (slope.abs() > 1e-7 * curvature.sqrt()) & ~never & ~even
        if not moving.any():
            break
        low, high = (
            torch.where(side * slope < 0, theta, low),
            torch.where(side * slope < 0, high, theta),
        )
        newton = theta - side * slope / curvature
        theta = torch.where(
            moving, torch.where((low < newton) & (newton < high), newton, (low + high) / 2), theta
        )
    w = side * (2 * (log_alive - value)).sqrt()
    u = side * theta * curvature.sqrt()
    density = torch.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    share = (0.5 * torch.erfc(w / math.sqrt(2)) + density * (1 / u - 1 / w)).clamp(0.0, 1.0)
    found = torch.where(never, torch.where(side > 0, tied, alive - tied), alive * share)
    return torch.where(even, alive / 2, found)


def _log_moments(
    chain: Lead, theta: Float[Tensor, " n"], transitions: Int[Tensor, " n"]
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Return log M_n and two derivatives in theta, by n applications of the operator
    and of its derivatives.

    Each n has its own theta. All are iterated together, and each is read after its
    number of applications.
    """
    A, A1, A2 = (chain.tilted(theta, order) for order in (0, 1, 2))
    v, v1, v2 = (
        torch.ones_like(A[:, 0]),
        *torch.zeros_like(A[:, :2]).unbind(1),
    )  # M_n and two derivatives, by window
    log_scale, found = torch.zeros_like(theta), torch.empty(3, len(theta), dtype=theta.dtype)
    for n in range(1, int(transitions.max()) + 1):
        if (n - 1) % chain.every == 0:
            v2 = _sum_next(A2, v) + 2 * _sum_next(A1, v1) + _sum_next(A, v2)
            v, v1 = _sum_next(A, v), _sum_next(A1, v) + _sum_next(A, v1)
        else:
            v, v1, v2 = (_sum_next(chain.law[..., None], w) for w in (v, v1, v2))
        scale = v.amax(dim=0)
        v, v1, v2 = v / scale, v1 / scale, v2 / scale
        log_scale = log_scale + scale.log()
        if (last := transitions == n).any():
            m, m1, m2 = (chain.start @ w[:, last] for w in (v, v1, v2))
            found[:, last] = torch.stack(
                [log_scale[last] + m.log(), m1 / m, m2 / m - (m1 / m) ** 2]
            )
    log_moment, slope, curvature = found
    return log_moment, slope, curvature


def _log_root(chain: Lead, theta: float) -> float:
    """Return the log of the Perron root of L_theta L_0^(every - 1), by power iteration
    from a positive vector.

    Adding half the vector to its image keeps the Perron vector and breaks any
    periodicity.
    """
    A = chain.tilted(torch.tensor([theta], dtype=chain.law.dtype))
    v = torch.ones_like(A[:, 0])
    growth = 0.0
    for _ in range(100_000):
        image = v
        for _ in range(chain.every - 1):
            image = _sum_next(chain.law[..., None], image)
        image = _sum_next(A, image)
        growth = (image.sum() / v.sum()).item()
        if growth == 0.0:
            return -math.inf
        new = image / growth + 0.5 * v
        new /= new.max()
        if (new - v).abs().max() < 1e-14:
            break
        v = new
    return math.log(growth)
