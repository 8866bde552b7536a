r"""What a hand-written circuit is meant to compute: the plan its weights follow, the closed form they must equal.

At query i (0-based) the third layer's score of lag k is

$$ E_{i,k} = \sum_h b_h(i) \sum_{o \in C_h} \tilde p_{i-o,\,k}, \qquad
   \tilde p_{n,k} = \frac{p_{n,k}^\gamma}{\sum_l p_{n,l}^\gamma}, \quad p_{n,k} = P_{s_{n-k},\,s_n}, $$

over the transitions $\hat k \le i - o$, where head h of the second layer takes the offsets $C_h$ (`colours`). The
weights of the lags are the softmax of E. What $b_h$ is depends on the evidence:

- mean, the paper's: $\beta\,w_h / n_h(i)$ with $n_h(i)$ the number of transitions head h sees and $w_h$ its share of
  the offsets relative to the average head's (1 where all heads take equally many);
- mean with a sink: $\beta / \sum_h n_h(i)$, Prop. 1 to the letter;
- sum (always with a sink): $\beta$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.task import Task

Target = Literal["paper", "bayes", "two-lags"]
Third = Literal["mask", "position", "key"]
Evidence = Literal["mean", "sum"]

ZERO = -1e4
"""Written for log 0: its exponential is 0 in float32 and float64, and 0 times it is 0."""


@dataclass(frozen=True)
class Circuit:
    """A complete description of a construction, apart from P."""

    target: Target
    third: Third
    lags: tuple[int, ...]
    length: int
    colours: tuple[int, ...]
    heads: int
    evidence: Evidence
    sink: bool
    lam: float
    beta: float
    temper: float
    log_zero: float
    """What stands for the logarithm of a probability 0, before `temper`."""
    symmetric: bool
    """Two first-layer heads, with exponents +temper and -temper; the evidence is half the difference of theirs."""
    prior: bool
    """The scores hold the logarithm of the task's prior over lags."""
    bound: float | None
    """No attention weight is further from the exact posterior than this (target "bayes")."""
    rounding: float
    """How far rounding may move an attention weight from this closed form."""

    @property
    def max_lag(self) -> int:
        return self.lags[-1]

    @property
    def first_row(self) -> int:
        """The first position (0-based) from which the attention equals the closed form."""
        if self.sink:
            return self.max_lag - 1
        if self.third == "key":
            return 2 * self.max_lag - 1  # the older key, max_lag - 1 back, must have seen a transition itself
        # Every head needs an allowed key at the query, and in the mask form at the attended keys too.
        ready = self.max_lag + max(self.colours.index(head) for head in range(self.heads))
        return ready + (self.max_lag - 1 if self.third == "mask" else 0)

    def head_of(self, offset: int) -> int:
        """The second-layer head (from 0) that takes this offset; -1 where none does."""
        return self.colours[offset % len(self.colours)]

    def counts(self) -> Int[Tensor, "time head"]:
        """n_h(i): how many transitions head h sees from position i."""
        offsets = torch.tensor([self.head_of(o) for o in range(self.length - self.max_lag)])
        taken = torch.nn.functional.one_hot(offsets + 1, self.heads + 1)[:, 1:]
        before = torch.zeros((self.max_lag, self.heads), dtype=torch.int64)
        return torch.cat([before, taken.cumsum(dim=0)])

    def shares(self) -> list[float]:
        """w_h: a head's share of the offsets relative to the average head's."""
        taken = [self.colours.count(head) for head in range(self.heads)]
        return [count * self.heads / sum(taken) for count in taken]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Circuit:
        lists = {name: tuple(values[name]) for name in ("lags", "colours")}
        return Circuit(**{**values, **lists})


def log_probabilities(task: Task, circuit: Circuit) -> Float[Tensor, "state state"]:
    """log P, with a finite number in place of log 0."""
    return torch.where(task.P > 0, task.P.log(), circuit.log_zero)


def normalised(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit, temper: float
) -> Float[Tensor, "batch time lag"]:
    """p-tilde at every position from max_lag on; 0 before, where no head looks."""
    size, time = tokens.shape
    first = circuit.max_lag
    log_P = (temper * log_probabilities(task, circuit)).to(tokens.device)
    if temper > 0 and circuit.log_zero == ZERO:
        log_P = torch.where(task.P.to(tokens.device) > 0, log_P, ZERO)
    out = torch.zeros((size, time, len(circuit.lags)), dtype=torch.float64, device=tokens.device)
    if time > first:
        parents = torch.stack([tokens[:, first - k : time - k] for k in circuit.lags], dim=-1)
        out[:, first:] = torch.softmax(log_P[parents, tokens[:, first:, None]], dim=-1)
    return out


def circuit_scores(tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit) -> Float[Tensor, "batch time lag"]:
    """E at every position, in time proportional to positions x lags x period; right from `circuit.first_row` on."""
    p = normalised(tokens, task, circuit, circuit.temper)
    if circuit.symmetric:
        p = (p - normalised(tokens, task, circuit, -circuit.temper)) / 2
    seen = (torch.arange(tokens.shape[1], device=tokens.device) - circuit.max_lag + 1).clamp_min(0)
    if circuit.third == "key":
        return _two_lag_scores(p, seen, circuit)
    sums = strided_sums(p, len(circuit.colours))
    heads = [
        sum((shifted(sums, o) for o, h in enumerate(circuit.colours) if h == head), torch.zeros_like(p))
        for head in range(circuit.heads)
    ]
    if circuit.evidence == "sum":
        scores = circuit.beta * sum(heads, torch.zeros_like(p))
    else:
        counts = _counts(seen, circuit)
        if circuit.sink:
            counts = counts.sum(dim=-1, keepdim=True).expand_as(counts)
        shares = [1.0] * circuit.heads if circuit.sink else circuit.shares()
        scores = torch.zeros_like(p)
        for head, total in enumerate(heads):
            scores += circuit.beta * shares[head] * total / counts[:, head, None].clamp_min(1)
    return scores + task.lag_prior.log().to(p.device) if circuit.prior else scores


def circuit_weights(tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit) -> Float[Tensor, "batch time lag"]:
    """The attention the third layer pays to the token each lag would copy: the fast way to use a construction."""
    return torch.softmax(circuit_scores(tokens, task, circuit), dim=-1)


def strided_sums(p: Float[Tensor, "batch time lag"], stride: int) -> Float[Tensor, "batch time lag"]:
    r"""$\sum_{t \ge 0} p_{n - t \cdot stride}$ at every n."""
    size, time, width = p.shape
    rows = math.ceil(time / stride)
    padded = torch.zeros((size, rows * stride, width), dtype=p.dtype, device=p.device)
    padded[:, :time] = p
    return padded.view(size, rows, stride, width).cumsum(dim=1).reshape(size, rows * stride, width)[:, :time]


def shifted(values: Float[Tensor, "batch time lag"], by: int) -> Float[Tensor, "batch time lag"]:
    """values[i - by], 0 where that is before the start."""
    out = torch.zeros_like(values)
    if by < values.shape[1]:
        out[:, by:] = values[:, : values.shape[1] - by]
    return out


def _counts(seen: Int[Tensor, " time"], circuit: Circuit) -> Float[Tensor, "time head"]:
    """n_h(i) for any number of positions, from the number of transitions seen."""
    period = len(circuit.colours)
    running = torch.zeros((period + 1, circuit.heads), dtype=torch.float64, device=seen.device)
    for offset, head in enumerate(circuit.colours):
        running[offset + 1] = running[offset]
        if head >= 0:
            running[offset + 1, head] += 1
    return (seen // period)[:, None] * running[-1] + running[seen % period]


def _two_lag_scores(
    p: Float[Tensor, "batch time lag"], seen: Int[Tensor, " time"], circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    r"""$\frac{\beta}{n(j)} \sum_{o \in C} (\tilde p_{j-o,k} - \tilde p_{j-o,k'})$ at the key j = i - k + 1."""
    sums = strided_sums(p, len(circuit.colours))
    total = sum((shifted(sums, o) for o, h in enumerate(circuit.colours) if h == 0), torch.zeros_like(p))
    at_key = circuit.beta * (total - total.flip(-1)) / _counts(seen, circuit)[:, :1].clamp_min(1)
    return torch.cat([shifted(at_key[..., j : j + 1], lag - 1) for j, lag in enumerate(circuit.lags)], dim=-1)


def one_residue_a_head(colours: Sequence[int]) -> bool:
    """Whether every head takes the offsets of one residue modulo the period, as for contiguous lags."""
    taken = [head for head in colours if head >= 0]
    return len(taken) == len(set(taken))
