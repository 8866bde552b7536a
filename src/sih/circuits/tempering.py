r"""From p-tilde to log-likelihoods: the exponent, and its certified error.

With exponent $\gamma$ the first layer's attention is $\sigma_k(\gamma) = e^{\gamma l_k}
/ \sum_m e^{\gamma l_m}$, $l_k = \log p_{n,k}$. Let $a_k = l_k - \mathrm{mean}(l)$ and
let R be the largest difference of two logarithms in one *column* of P: all lags compete
to explain one token. Then

$$ K \sigma_k(\gamma) / \gamma = 1/\gamma + a_k + \text{error}, $$

and the sum over the transitions is the log-likelihood, up to a term common to all lags.

**Setting.** Let $d_k = a_k - \bar a$, V and M be the mean, variance and third moment of
a under $\sigma$, and $f = K(\sigma_k - \sigma_l)$. The d lie in an interval of length R
about 0, $K \sigma \le e^{\gamma R}$ and $K |\sigma_k - \sigma_l| \le \gamma R e^{\gamma
R}$.

**One first-layer head.** $f'' = K \sigma_k (d_k^2 - d_l^2) + K (\sigma_k -
\sigma_l)(d_l^2 - V)$, and both brackets are at most $R^2$. By Taylor's theorem the
error of a difference of two lags is at most $\tfrac{\gamma}{2} R^2 (1 + \gamma R)
e^{\gamma R}$ a transition.

**Two first-layer heads** of exponents $\pm\gamma$. In $K(\sigma_k(\gamma) -
\sigma_k(-\gamma))/(2\gamma)$ the even terms cancel. $f''' = K \sigma_k (s_k - s_l) + K
(\sigma_k - \sigma_l) s_l$ with $s = d^3 - 3 d V - M$, $|s| \le 2 R^3$ and $-\tfrac34
R^3 \le s_k - s_l \le R^3$ for $d_k \ge d_l$. So the error of a difference is at most
$\tfrac{\gamma^2}{6} R^3 (1 + 2 \gamma R) e^{\gamma R}$.

**Rounding** is `UNITS` of the machine's unit u times the largest score, $K / \gamma$
times the size of the heads' sum (`rounding.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from sih.circuits.any_circuit import AnyCircuit, Bounds
from sih.circuits.rounding import UNITS, early_rounding, rounding_bounds, weight_error
from sih.task import MatrixTask, has_parent

LOG_ZERO = {torch.float64: -100.0, torch.float32: -25.0}
"""The logarithm for a probability of 0: e^-100 of a weight is negligible."""


@dataclass(frozen=True)
class Tempering:
    """An exponent, with its bound on the error of two lags' log-odds."""

    temper: float
    truncation: float
    rounding: float

    @property
    def bound(self) -> float:
        """Return the certified error of an attention weight."""
        return weight_error(self.truncation + self.rounding)


def best_tempering(
    task: MatrixTask, size: float, dtype: torch.dtype, *, symmetric: bool
) -> Tempering:
    """Return the exponent of least certified error, on a fine grid of powers of ten.

    Args:
        size: a bound on the sum of the second layer's heads, in transitions.
    """
    R = column_spread(task, dtype)
    transitions = int(has_parent(task.parents(task.length)).sum())
    unit = torch.finfo(dtype).eps / 2
    found = []
    for power in range(20, 240):
        gamma = 10 ** (-power / 20)
        truncation = transitions * truncation_error(gamma, R, symmetric=symmetric)
        rounding = UNITS * unit * len(task.hypotheses) / gamma * max(size, 1.0)
        found.append(Tempering(gamma, truncation, rounding))
    return min(found, key=lambda each: each.truncation + each.rounding)


def truncation_error(gamma: float, R: float, *, symmetric: bool) -> float:
    """Return the error of one transition, by the module's formulas."""
    growth = math.exp(min(gamma * R, 700.0))
    if symmetric:
        return gamma**2 / 6 * R**3 * (1 + 2 * gamma * R) * growth
    return gamma / 2 * R**2 * (1 + gamma * R) * growth


def tempered_bounds(
    circuit: AnyCircuit, task: MatrixTask, size: float, dtype: torch.dtype, *, mixing: float | None
) -> Bounds:
    """Return the bounds of a circuit that sums log-likelihoods.

    They are proved for the best exponent alone. For others only rounding is bounded,
    not the distance from the posterior.

    Args:
        mixing: change of the log-odds by mixed lags, 0 if none mix. None: unbounded,
            since transitions are ignored.
    """
    best = best_tempering(task, size, dtype, symmetric=circuit.symmetric)
    if best.temper != circuit.temper:
        return rounding_bounds(circuit, dtype)
    early = early_rounding(circuit.masks.allow, dtype)
    last = weight_error(best.rounding) * circuit.times
    if mixing is None:
        return Bounds(early, last, posterior=None)
    posterior = weight_error(best.truncation + best.rounding + mixing)
    return Bounds(early, last, posterior)


def column_spread(task: MatrixTask, dtype: torch.dtype) -> float:
    """Return R, the largest difference of a token's evidence between two lags."""
    logs = torch.where(task.P > 0, task.P.log(), LOG_ZERO[dtype])
    return (logs.amax(dim=0) - logs.amin(dim=0)).max().item()
