r"""Computes how often the wrong lag is picked after n transitions, by large deviations, without sampling.

A rule keeps a running score for each lag and picks the largest: the log-likelihood (ML), the sum of $\tilde p$ (the
paper's estimator, the limit of large beta), or the sum of every K-th $\tilde p$ (one second-layer head, Sec. 5.4).
Under true lag k the window $w = (X_{i-\hat k}, .., X_{i-1})$ is a Markov chain, and the lead of a rival r is a sum of
increments d(w, s) along it. With the tilted operator $(L_\theta v)(w) = \sum_s P_{x_k,s}\,e^{\theta d(w,s)}\,v(w')$,

$$\Pr(\text{lead of r} \ge 0) = e^{-n I + o(n)}, \qquad I = -\min_{\theta \ge 0} \log \varrho(L_\theta),$$

$\varrho$ the Perron root (Gärtner-Ellis). The moment generating function $M_n(\theta) = \mu L_\theta^n 1$ is exact for
every n, and its saddle point gives the probability itself (Lugannani and Rice).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.task import Task

Score = Literal["ML", "estimator", "single head"]
SCORES: tuple[Score, ...] = ("ML", "estimator", "single head")
WINDOW_LIMIT = 2**16
"""Windows S ** max_lag whose Perron root is computed."""
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, eq=False)
class Lead:
    """Holds the chain of windows under a true lag: each next token's law, the window it leads to, the rival's gain."""

    law: Float[Tensor, "window state"]
    following: Int[Tensor, "window state"]
    gain: Float[Tensor, "window state"]
    start: Float[Tensor, " window"]
    every: int
    """The gain counts at every so many transitions."""

    def tilted(self, theta: float, order: int = 0) -> Float[Tensor, "window state"]:
        r"""Give $P_{x_k,s}\, d^{\text{order}} e^{\theta d}$, or 0 where d is minus infinity: the rival is out."""
        finite = torch.isfinite(self.gain)
        gain = torch.where(finite, self.gain, 0.0)
        return torch.where(finite, self.law * gain**order * torch.exp(theta * gain), 0.0)


def lead(task: Task, true_lag: int, rival: int, score: Score) -> Lead:
    """Describe a rival's lead under a rule. Windows count in base S, the oldest token first, and start independent."""
    if true_lag == rival or not {true_lag, rival} <= set(task.lags):
        raise ValueError(f"true lag and rival are two of the lags {task.lags}; got {true_lag} and {rival}")
    S, depth = task.num_states, task.max_lag
    if S**depth > WINDOW_LIMIT:
        raise ValueError(
            f"rates are exact for at most {WINDOW_LIMIT} windows of max_lag tokens; {S} states and max_lag {depth} "
            f"have {S**depth}; try fewer states or smaller lags"
        )
    window = torch.arange(S**depth)
    digits = torch.stack([window // S ** (lag - 1) % S for lag in range(1, depth + 1)])  # [lag - 1]: X_{i-lag}
    p = {lag: task.P[digits[lag - 1]] for lag in task.lags}  # (window, state)
    if score == "ML":
        gain = torch.where(p[true_lag] > 0, p[rival].log() - p[true_lag].log(), 0.0)
    else:
        total = torch.stack(list(p.values())).sum(dim=0)
        gain = torch.where(total > 0, (p[rival] - p[true_lag]) / total, 0.0)
    following = window[:, None] % S ** (depth - 1) * S + torch.arange(S)
    start = task.stationary[digits].prod(dim=0)
    return Lead(p[true_lag], following, gain, start, len(task.lags) if score == "single head" else 1)


def exponent(task: Task, true_lag: int, rival: int, score: Score) -> float:
    """Compute I, above, in nats per transition: 0 for a rival not behind on average, infinite if it cannot catch up."""
    chain = lead(task, true_lag, rival, score)
    low, high = 0.0, 1.0  # log rho is convex and 0 at 0: find a bracket of its minimum, then narrow it
    while (value := _log_root(chain, 2 * high)) < _log_root(chain, high):
        if value < -700 or high > 1e5:
            return math.inf
        low, high = high, 2 * high
    high *= 2
    inner, outer = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_inner, at_outer = _log_root(chain, inner), _log_root(chain, outer)
    for _ in range(36):  # golden sections to 3e-8 of the bracket, which is 1e-15 of the value at a smooth minimum
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
    """Give the exponent of picking the wrong lag, whichever is true: that of the worst pair of true lag and rival."""
    return min(exponent(task, k, r, score) for k in task.lags for r in task.lags if r != k)


def overtaking_probability(chain: Lead, transitions: int) -> float:
    r"""Approximate Pr(lead >= 0 after n transitions) by the saddle point of $\log M_n$ (Lugannani and Rice).

    Its relative error falls as 1/n, save for gains on a lattice, where ties have weight. M_n(0) is
    the probability that no transition has put the rival out for good; the rest is given that.
    """
    log_alive, slope, curvature = _log_moments(chain, 0.0, transitions)
    alive = math.exp(log_alive)
    if abs(slope) <= 1e-9 * math.sqrt(max(curvature, 0.0)):
        return alive / 2
    finite = torch.isfinite(chain.gain)
    if slope > 0:  # the true lag's lead over the rival, where what has put the rival out stays out
        mirrored = replace(chain, gain=torch.where(finite, -chain.gain, chain.gain))
        return alive - overtaking_probability(mirrored, transitions)
    largest = 300 / chain.gain[finite].abs().max().item()  # beyond it exp overflows
    high = min(1.0, largest)
    while _log_moments(chain, high, transitions)[1] < 0:
        if high == largest:  # the lead is never above 0, and M_n tends to the probability that it is 0
            return math.exp(_log_moments(chain, high, transitions)[0])
        high = min(2 * high, largest)
    low, theta = 0.0, high / 2
    for _ in range(60):  # log M_n is convex: Newton's method on its slope, and halving where that leaves the bracket
        value, slope, curvature = _log_moments(chain, theta, transitions)
        if abs(slope) <= 1e-7 * math.sqrt(curvature):
            break
        low, high = (theta, high) if slope < 0 else (low, theta)
        newton = theta - slope / curvature
        theta = newton if low < newton < high else (low + high) / 2
    w = math.sqrt(2 * (log_alive - value))
    u = theta * math.sqrt(curvature)
    density = math.exp(-w * w / 2) / math.sqrt(2 * math.pi)
    return alive * min(1.0, max(0.0, 0.5 * math.erfc(w / math.sqrt(2)) + density * (1 / u - 1 / w)))


def _log_moments(chain: Lead, theta: float, transitions: int) -> tuple[float, float, float]:
    """Compute log M_n and two derivatives in theta, by n applications of the operator and of its derivatives."""
    A, A1, A2 = (chain.tilted(theta, order) for order in (0, 1, 2))
    none, windows = torch.zeros_like(A), len(A)
    leibniz = [[A, none, none], [A1, A, none], [A2, 2 * A1, A]]
    tilted = torch.stack([torch.stack(row, dim=-1) for row in leibniz], dim=1).view(windows, 3, -1)
    v = torch.tensor([1.0, 0.0, 0.0], dtype=A.dtype).repeat(windows, 1)  # of each window, M_n and two derivatives
    log_scale = 0.0
    for n in range(transitions):
        V = v[chain.following]
        v = tilted.bmm(V.view(windows, -1, 1))[..., 0] if n % chain.every == 0 else chain.law[:, None].bmm(V)[:, 0]
        scale = v[:, 0].max().item()
        v = v / scale
        log_scale += math.log(scale)
    m, m1, m2 = (chain.start @ v).tolist()
    return log_scale + math.log(m), m1 / m, m2 / m - (m1 / m) ** 2


def _log_root(chain: Lead, theta: float) -> float:
    """Compute the log of the Perron root of L_theta L_0^(every - 1), by power iteration from a positive vector.

    Adding half the vector to its image leaves the Perron vector alone and breaks any periodicity.
    """
    A = chain.tilted(theta)
    v = torch.full_like(chain.start, 1.0)
    growth = 0.0
    for _ in range(100_000):
        image = v
        for _ in range(chain.every - 1):
            image = (chain.law * image[chain.following]).sum(dim=-1)
        image = (A * image[chain.following]).sum(dim=-1)
        growth = (image.sum() / v.sum()).item()
        if growth == 0.0:
            return -math.inf
        new = image / growth + 0.5 * v
        new /= new.max()
        if (new - v).abs().max() < 1e-14:
            break
        v = new
    return math.log(growth)
