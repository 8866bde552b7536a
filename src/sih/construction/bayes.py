r"""The constants of the Bayes-optimal circuit, chosen so that its certified error is least.

With exponent $\gamma$ the first layer's attention is $\sigma_k(\gamma) = e^{\gamma l_k} / \sum_m e^{\gamma l_m}$,
$l_k = \log p_{n,k}$. Let $a_k = l_k - \mathrm{mean}(l)$ and R the largest difference of two logarithms in one *column*
of P: all lags compete to explain one token. Then $K \sigma_k(\gamma) / \gamma = 1/\gamma + a_k + \text{error}$, and
adding it up over the transitions gives the log-likelihood up to what is common to all lags.

Let $d_k = a_k - \bar a$, V and M the mean, variance and third moment of a under $\sigma$, and $f = K(\sigma_k -
\sigma_l)$. The d lie in an interval of length R about 0, $K \sigma \le e^{\gamma R}$ and $K |\sigma_k - \sigma_l| \le
\gamma R e^{\gamma R}$.

**One first-layer head.** $f'' = K \sigma_k (d_k^2 - d_l^2) + K (\sigma_k - \sigma_l)(d_l^2 - V)$, and both brackets are
at most $R^2$. By Taylor's theorem the error of a difference of two lags is at most $\tfrac{\gamma}{2} R^2 (1 + \gamma
R) e^{\gamma R}$ a transition.

**Two first-layer heads** with exponents $\pm\gamma$: in $K(\sigma_k(\gamma) - \sigma_k(-\gamma))/(2\gamma)$ the even
terms cancel. $f''' = K \sigma_k (s_k - s_l) + K (\sigma_k - \sigma_l) s_l$ with $s = d^3 - 3 d V - M$, $|s| \le 2 R^3$
and $-\tfrac34 R^3 \le s_k - s_l \le R^3$ for $d_k \ge d_l$: the error of a difference is at most $\tfrac{\gamma^2}{6}
R^3 (1 + 2 \gamma R) e^{\gamma R}$.

Two softmaxes whose log-odds differ by at most $\delta$ differ by at most $\tanh(\delta / 4)$ in any weight. Where lags
mix exactly (`sih.construction.profiles`), only differences of lags count, and the bounds hold unchanged; what a
profile's matrices are off counts besides.

**Rounding** is of the size of the machine's unit u times the largest score, $K / \gamma$ times `Circuit.size`; it is
taken as ROUNDING times that, a margin over what `sih verify` measures, not a theorem.
"""

import math
from dataclasses import dataclass

import torch

from sih.construction.circuit import Circuit
from sih.construction.parents_circuit import ParentsCircuit
from sih.task import MatrixTask, counted

ROUNDING = 16.0
LOG_ZERO = {torch.float64: -100.0, torch.float32: -25.0}
"""A probability 0 counts as this logarithm: e^-100 of a weight is nothing; float32 has no room for so much."""


@dataclass(frozen=True)
class Tempering:
    """Holds an exponent for the first layer and the bounds it gives on an attention weight's error."""

    temper: float
    log_odds: tuple[float, float]
    """By how much truncation, and rounding, may move the log-odds of two lags."""

    @property
    def rounding(self) -> float:
        return weight_error(self.log_odds[1])

    @property
    def bound(self) -> float:
        return weight_error(sum(self.log_odds))


def column_spread(task: MatrixTask, dtype: torch.dtype) -> float:
    """Return R, the most that the evidence of one token can differ between two lags."""
    logs = torch.where(task.P > 0, task.P.log(), LOG_ZERO[dtype])
    return (logs.amax(dim=0) - logs.amin(dim=0)).max().item()


def best_tempering(task: MatrixTask, size: float, dtype: torch.dtype, symmetric: bool) -> Tempering:
    """Find the exponent with the least certified error, on a fine grid of powers of ten, for a circuit of this size."""
    unit = torch.finfo(dtype).eps / 2
    spread = column_spread(task, dtype)
    transitions = int(counted(task.parents(task.length)).sum())

    def tempering(gamma: float) -> Tempering:
        growth = math.exp(min(gamma * spread, 700.0))
        if symmetric:
            error = gamma**2 / 6 * spread**3 * (1 + 2 * gamma * spread) * growth
        else:
            error = gamma / 2 * spread**2 * (1 + gamma * spread) * growth
        rounding = ROUNDING * unit * len(task.hypotheses) / gamma * max(size, 1.0)
        return Tempering(gamma, (transitions * error, rounding))

    return min((tempering(10 ** (-i / 20)) for i in range(20, 240)), key=lambda t: sum(t.log_odds))


def certified(
    circuit: Circuit | ParentsCircuit, task: MatrixTask, dtype: torch.dtype
) -> Tempering | None:
    """Return the bounds on a circuit's attention, if it has the exponent for which they are proved."""
    if not circuit.prior:
        return None
    best = best_tempering(task, circuit.size, dtype, circuit.symmetric)
    return best if best.temper == circuit.temper else None


def certified_bound(
    circuit: Circuit | ParentsCircuit, task: MatrixTask, dtype: torch.dtype
) -> float | None:
    """Return how far an attention weight may be from the exact posterior, or None where no bound is proved.

    None is proved for circuits of another target, for an exponent of one's own choice, and for fewer heads than are
    needed, since nothing bounds what goes unused. A profile adds what its matrices are off.
    """
    found = certified(circuit, task, dtype)
    if found is None or isinstance(circuit, ParentsCircuit):
        return None if found is None else found.bound
    if -1 in circuit.head_of_offset:
        return None
    if circuit.profile is None:
        return found.bound
    spread = column_spread(task, dtype)
    off = circuit.profile.log_odds_error(spread * math.exp(min(circuit.temper * spread, 700.0)))
    return weight_error(sum(found.log_odds) + off)


def weight_error(log_odds_error: float) -> float:
    """Bound the error of a weight by that of the log-odds behind it."""
    return math.tanh(log_odds_error / 4)
