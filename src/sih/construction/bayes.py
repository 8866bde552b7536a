r"""The constants of the Bayes-optimal circuit, chosen so that its certified error is least.

With exponent $\gamma$ the first layer's attention is $\sigma_k(\gamma) = e^{\gamma l_k} / \sum_m e^{\gamma l_m}$,
$l_k = \log p_{n,k}$. Let $a_k = l_k - \mathrm{mean}(l)$ and R the largest difference of two logarithms of entries of
P. Then $K \sigma_k(\gamma) / \gamma = 1/\gamma + a_k + \text{error}$, and adding it up over the transitions gives the
log-likelihood up to what is common to all lags.

**One first-layer head.** $\sigma_k'' = \sigma_k [(a_k - \bar a)^2 - \mathrm{Var}]$ with mean and variance under
$\sigma$, which lies between $-\sigma_k R^2/4$ and $\sigma_k R^2$, and $K \sigma_k \le e^{\gamma R}$. By Taylor's
theorem the error of a difference of two lags is at most $\tfrac{\gamma}{2} (1 + \tfrac14) R^2 e^{\gamma R}$ a
transition.

**Two first-layer heads** with exponents $\pm\gamma$: in $K(\sigma_k(\gamma) - \sigma_k(-\gamma))/(2\gamma)$ the even
terms cancel, and with $|\sigma_k'''| \le 2 \sigma_k R^3$ the error of a difference is at most $\tfrac{2}{3} \gamma^2
R^3 e^{\gamma R}$.

Two softmaxes whose log-odds differ by at most $\delta$ differ by at most $\tanh(\delta / 4)$ in any weight.

**Rounding** is of the size of the machine's unit u times the largest score, $K C / \gamma$ for each head of the
second layer with C transitions; it is taken as ROUNDING times that, a margin over what `sih verify` measures, not a
theorem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from sih.construction.circuit import Circuit
from sih.task import Task

ROUNDING = 16.0
LOG_ZERO = {torch.float64: -100.0, torch.float32: -25.0}
"""A probability 0 counts as this logarithm: e^-100 of a weight is nothing; float32 has no room for so much."""


@dataclass(frozen=True)
class Tempering:
    """Holds an exponent for the first layer and the bounds it gives on an attention weight's error."""

    temper: float
    truncation: float
    rounding: float

    @property
    def bound(self) -> float:
        return self.truncation + self.rounding


def best_tempering(task: Task, heads: int, dtype: torch.dtype, symmetric: bool) -> Tempering:
    """Find the exponent with the least certified error, on a fine grid of powers of ten."""
    unit = torch.finfo(dtype).eps / 2
    logs = torch.where(task.P > 0, task.P.log(), LOG_ZERO[dtype])
    spread = (logs.max() - logs.min()).item()
    transitions = task.length - task.max_lag
    lags = len(task.lags)

    def tempering(gamma: float) -> Tempering:
        growth = math.exp(min(gamma * spread, 700.0))
        error = (2 / 3 * gamma**2 * spread**3 if symmetric else 0.625 * gamma * spread**2) * growth
        # Every head's scores are of size K C / gamma, with C about its share of the transitions.
        size = lags / gamma * max(transitions / heads, 1.0)
        return Tempering(gamma, weight_error(transitions * error), weight_error(ROUNDING * unit * size))

    return min((tempering(10 ** (-i / 20)) for i in range(20, 240)), key=lambda t: t.bound)


def certified(circuit: Circuit, task: Task, dtype: torch.dtype) -> Tempering | None:
    """Return the bounds on a circuit's attention, if it has the exponent for which they are proved."""
    if not circuit.prior:
        return None
    best = best_tempering(task, circuit.heads, dtype, circuit.symmetric)
    return best if best.temper == circuit.temper else None


def certified_bound(circuit: Circuit, task: Task, dtype: torch.dtype) -> float | None:
    """Return how far an attention weight may be from the exact posterior, or None where no bound is proved.

    None is proved for circuits of another target, for an exponent of one's own choice, and for fewer heads than are
    needed, since nothing bounds what goes unused.
    """
    found = certified(circuit, task, dtype)
    return None if found is None or -1 in circuit.head_of_offset else found.bound


def weight_error(log_odds_error: float) -> float:
    """Bound the error of a weight by that of the log-odds behind it."""
    return math.tanh(log_odds_error / 4)
