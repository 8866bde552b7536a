r"""A circuit that identifies the lag by layer 2's attention pattern, as trained models
do.

Colour the integers with c as for the paper's circuit: no two of one colour differ by a
difference of two lags. With $\chi$ colours take the corners $v_0, \dots, v_{\chi-1}$ of
a simplex, $v_a \cdot v_b = [a=b] - 1/\chi$. They have $\chi - 1$ coordinates, one for
each second-layer head: one head fewer than colours. K is the number of lags.

- Layer 1 stores $\tilde p_{m,k}$, with exponent $\gamma$, at index m - k. Rows before
  max_lag attend to position 0.
- Head h at row j scores key m with
  $s_h = \epsilon \sum_k \tilde p_{m,k}\, v_{c(j-m+k)}[h]$: it attends to keys m with a
  parent (found by layer 1) in phase with the row. A sink at 0 brings the total to about
  C.
- The third layer reads the *key's* row,
  $\frac{CK}{\epsilon\gamma} \sum_{h,m} a_h[j,m]\, v_{c(i-m+1)}[h]$, less what it reads
  where all $\tilde p$ are 1/K, which depends on positions alone.

**Proof.** At the key of lag $k_0$, $j = i - k_0 + 1$, transition m has o = i - m and
$j-m+k = (o+1) + (k-k_0)$, which has the colour of o + 1 only for $k = k_0$. With
$\tilde p = 1/K + \gamma \tilde q / K$, $\sum_k \tilde q_k = 0$, the part of $C a_h$
that is linear in $\tilde q$ is $t_h = \frac{\epsilon\gamma}{K} \sum_k \tilde q_k
v_{c(o+1+k-k_0)}[h]$, and $\frac{K}{\epsilon\gamma}\, v_{c(o+1)} \cdot t = \tilde
q_{k_0}$. So the score is the sum of $\tilde q_{m,k_0}$, the evidence, over the
transitions that every candidate key has seen: $o \ge \hat k - 1$. Offset 0 is read
straight from what layer 1 wrote at the query. **Offsets 1 .. max_lag - 2 go unused.**

**Error.** The lags at one key have different colours, so $|t| =
\frac{\epsilon\gamma}{K} |\tilde q| \le \tau = \epsilon\gamma \tilde R / 2\sqrt K$ for
$\tilde q$ of spread $\tilde R \le R e^{\gamma R}$ (R as in `tempering.py`), and the
scores at $\tilde q = 0$ have norm $\sigma = \epsilon \sqrt{(1 - K/\chi)/K}$, 0 if $\chi
= K$. With $\eta = e^{\sigma+\tau} - 1$, n transitions and $\zeta = n\eta/C$, the
softmax gives

$$ |C(a_h - a^0_h) - t_h| \le |t_h|\,\Bigl(\eta + \frac{(1+\eta)\zeta}{1-\zeta}\Bigr)
   + \frac{(1+\eta)^2 n \tau}{C(1-\zeta)^2}, $$

so a transition's share of a lag's score is off by at most $\frac{\sqrt K \tilde R}{2}
\kappa$, $\kappa$ the bracket plus $\sqrt{\chi-1} \frac{(1+\eta)^2 n}{C(1-\zeta)^2}$,
beside the tempering's own error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import AtLeast, Below, NotEmpty
from sih.circuits import steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.log_matrix import log_matrix
from sih.circuits.mask_strength import with_masks
from sih.circuits.offset_heads import choose_offsets
from sih.circuits.positions import at_offsets, choose, gaps
from sih.circuits.rounding import UNITS, early_rounding, weight_error
from sih.circuits.strengths import Strength, Strong
from sih.circuits.tempering import LOG_ZERO, Tempering
from sih.predictors.evidence import log_probabilities
from sih.task import Task

ROUGH = 0.05
"""The largest effect of rounding on a weight that is accepted."""


@dataclass(frozen=True)
class LookingOptions(CircuitOptions):
    """Options of the circuit for target "looking"."""

    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    temper: Strength | None = None
    """Exponent on the probabilities in the first layer. By default the exponent with
    the least certified error. It determines the inverse temperature."""
    looking: Annotated[float, Strong(most=10)] | None = None
    """Strength with which layer 2 follows the parents that layer 1 found, at most 10."""


@dataclass(frozen=True, kw_only=True)
class LookingCircuit(Circuit):
    """The circuit for target "looking", with all its numbers."""

    target: ClassVar[str] = "looking"
    Options: ClassVar[type[CircuitOptions]] = LookingOptions
    only_heads: ClassVar[str] = "layer 2 looks by phase: one head fewer than the paper's circuit"
    with_prior: ClassVar[bool] = True

    head_of_offset: Annotated[
        tuple[Annotated[int, AtLeast(0), Below(2**31)], ...],
        NotEmpty("a list of colours that is not empty, e.g. (0, 1)"),
    ]
    """The colour c of each offset, one period of it."""
    looking: Annotated[float, Strong(most=10)]
    r"""Strength $\epsilon$ with which layer 2 follows the parents that layer 1 found."""

    @classmethod
    def resolve(cls, task: Task, options: LookingOptions, dtype: torch.dtype) -> LookingCircuit:
        colours = choose_offsets(task.lags, heads=None)
        best = best_strengths(task, max(colours) + 1, dtype)
        temper = options.temper or best[0]
        looking = options.looking or best[1]
        if temper * looking > task.length:
            raise FieldError(
                "temper",
                f"temper times looking is at most the length, {task.length}, or the sink has no "
                f"weight left; got temper {temper:g}, looking {looking:g}",
            )
        error = looking_error(task, max(colours) + 1, temper, looking, dtype)
        if weight_error(error.rounding) > ROUGH:
            raise FieldError(
                "dtype",
                f"{dtype} has too few digits for temper {temper:g}, looking {looking:g}; "
                "use torch.float64, or larger ones, e.g. temper=1.0, looking=1.0",
            )
        circuit = cls(
            lags=task.lags,
            length=task.length,
            beta=len(task.lags) / temper,
            temper=temper,
            sink=True,
            log_zero=LOG_ZERO[dtype],
            head_of_offset=colours,
            looking=looking,
        )
        return with_masks(circuit, task, options.lam)

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        steps.attend_to_parents(blocks, task, self)
        self.rest_before_max_lag(blocks.block("1.1", "position", "position"))
        scores = steps.candidate_scores(self)
        # Offset 0: the evidence that layer 1 found at the query.
        newest = self.beta * (gaps(self.length) == -1).double()
        blocks.block("3.1", "1.1/position", "position").copy_(newest)
        neutral = self.stored(self.neutral(self.length))
        scores = scores - neutral[0] @ newest + steps.log_prior(task)
        at_rest = self.attention(neutral)[0]
        phases = self.phases(self.length)
        masks = self.second_masks(self.length)
        for head, reads in enumerate(self.reads(self.length)):
            name = f"2.{head + 1}"
            blocks.block(name, "position", "1.1/position").copy_(self.looking * phases[head])
            blocks.block(name, "position", "position").copy_(masks[head])
            blocks.block("3.1", "position", f"{name}/position").copy_(reads)
            scores = scores - reads @ at_rest[head].T
        blocks.block("3.1", "position", "position").copy_(scores)
        steps.copy_law(blocks, task, self, readout)

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        time = tokens.shape[1]
        p = steps.evidence(tokens, task, self)
        stored = torch.cat([self.stored(p), self.stored(self.neutral(time))])
        attention = self.attention(stored)
        looked = attention[:-1] - attention[-1]
        made = torch.arange(time)[:, None] >= self.max_lag
        scores = self.beta * torch.where(made, p - 1 / len(self.lags), 0.0)
        reads = self.reads(time)
        for index, lag in enumerate(self.lags):
            at_key = looked[:, :, : time - lag + 1] * reads[:, lag - 1 : time]
            scores[:, lag - 1 : time, index] += at_key.sum(dim=(1, 3))
        return torch.softmax(scores + task.lag_prior.log(), dim=-1)

    def posterior(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        """Return the posterior given the transitions used: offsets 0 and max_lag - 1
        on.
        """
        logs = log_probabilities(tokens, task, log_matrix(task.P, 1.0, self.log_zero))
        older = max(self.max_lag - 1, 1)
        used = logs.clone()
        used[:, older:] += logs.cumsum(dim=1)[:, : tokens.shape[1] - older]
        return torch.softmax(used + task.lag_prior.log(), dim=-1)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        attention = self.attention(self.stored(steps.evidence(tokens, task, self)))
        heads = attention.movedim(1, 0)
        return steps.expect_layers(tokens, task, self, heads, [0] * self.heads)

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        error = looking_error(task, self.colours, self.temper, self.looking, dtype)
        early = early_rounding(self.masks.allow, dtype)
        return Bounds(early, weight_error(error.rounding), error.bound)

    def strength(self) -> float:
        # A transition's attention varies by at most a factor e^(2 looking).
        varies = math.expm1(2 * self.looking) / self.looking
        return 2 * self.beta * (1 + self.length * math.sqrt(self.heads) * varies)

    @property
    def colours(self) -> int:
        """Return the number of colours."""
        return max(self.head_of_offset) + 1

    @property
    def heads(self) -> int:
        """Return the number of second-layer heads: one per coordinate of a corner."""
        return max(self.colours - 1, 1)

    @property
    def model_heads(self) -> tuple[int, int, int]:
        return 1, self.heads, 1

    @property
    def first_exact_position(self) -> int:
        return self.max_lag - 1

    @property
    def total(self) -> float:
        """Return C, so large that one key's weight is negligible beside it."""
        return total_weight(self.length, self.temper, self.looking)

    @property
    def pattern(self) -> tuple[int, ...]:
        return self.head_of_offset

    def describe(self) -> Iterator[str]:
        pattern = " ".join(str(colour + 1) for colour in self.head_of_offset)
        heads = (
            f"{self.heads} second-layer head(s) look, strength {self.looking:g}, by the colours "
            f"{pattern} of offsets 0, 1, 2, ... (and again); "
            f"offsets 1 to {self.max_lag - 2} go unused"
        )
        return self.lines(heads, third="looking", evidence="sum")

    def rest_before_max_lag(self, first: Float[Tensor, "query key"]) -> None:
        """Let the first layer's rows before max_lag attend to position 0."""
        first[: self.max_lag] = self.masks.forbid
        first[: self.max_lag, 0] = self.masks.allow

    def neutral(self, time: int) -> Float[Tensor, "1 time lag"]:
        r"""Return the $\tilde p$ that favours no lag: 1/K everywhere."""
        lags = len(self.lags)
        return torch.full((1, time, lags), 1 / lags, dtype=torch.float64)

    def stored(self, p: Float[Tensor, "batch time lag"]) -> Float[Tensor, "batch time time"]:
        r"""Return the output of layer 1: $\tilde p$ at m - k, and position 0 before
        max_lag.
        """
        attention = at_offsets(p, self.lags)
        attention[:, : self.max_lag] = 0.0
        attention[:, : self.max_lag, 0] = 1.0
        return attention

    def attention(
        self, stored: Float[Tensor, "batch time time"]
    ) -> Float[Tensor, "batch head query key"]:
        """Return the attention pattern of layer 2, given the output of layer 1."""
        time = stored.shape[1]
        followed = self.looking * self.phases(time) @ stored[:, None].mT
        scores = followed + self.second_masks(time)
        return torch.softmax(scores.masked_fill(gaps(time) < 0, -math.inf), dim=-1)

    def phases(self, time: int) -> Float[Tensor, "head query index"]:
        """Return $v_{c(j - x)}$: how far index x is in phase with row j."""
        return self.corners(gaps(time))

    def reads(self, time: int) -> Float[Tensor, "head query key"]:
        """Return layer 3's block between a query's position and head h at the key."""
        strength = self.beta * self.total / self.looking
        gap = gaps(time)
        used = (gap >= max(self.max_lag - 1, 1)) & (torch.arange(time) >= self.max_lag)
        return strength * self.corners(gap + 1) * used

    def corners(self, offsets: Int[Tensor, "query key"]) -> Float[Tensor, "head query key"]:
        """Return the simplex corner of each offset's colour."""
        colours = torch.tensor(self.head_of_offset)[offsets % len(self.head_of_offset)]
        return simplex(self.colours)[colours].permute(2, 0, 1)

    def second_masks(self, time: int) -> Float[Tensor, "head query key"]:
        """Return layer 2's position block: it allows transitions and gives the rest to
        the sink.
        """
        allow, forbid = self.masks
        row = torch.arange(time)
        masks = choose(row >= self.max_lag, allow, forbid).repeat(self.heads, time, 1)
        made = (row - self.max_lag + 1).clamp_min(0)
        rest = self.total - made.double()
        masks[:, :, 0] = allow + rest.log() - self.looking * self.phases(time)[:, :, 0]
        return masks


def simplex(count: int) -> Float[Tensor, "corner coordinate"]:
    r"""Return the corners v of a simplex, $v_a \cdot v_b = [a = b] - 1/\text{count}$
    (Helmert).
    """
    corners = torch.zeros(count, max(count - 1, 1), dtype=torch.float64)
    for h in range(1, count):
        corners[:h, h - 1] = 1 / math.sqrt(h * (h + 1))
        corners[h, h - 1] = -h / math.sqrt(h * (h + 1))
    return corners


def looking_error(
    task: Task, colours: int, temper: float, looking: float, dtype: torch.dtype
) -> Tempering:
    """Return a bound on the error of log-odds against `posterior`, as proved in the
    module.
    """
    lags = len(task.lags)
    n = max(task.length - task.max_lag, 1)
    logs = torch.where(task.P > 0, task.P.log(), LOG_ZERO[dtype])
    spread = (logs.max() - logs.min()).item()
    growth = math.exp(min(temper * spread, 300.0))
    total = total_weight(task.length, temper, looking)
    tau = looking * temper * spread * growth / (2 * math.sqrt(lags))
    sigma = looking * math.sqrt((1 - lags / colours) / lags)
    eta = math.expm1(min(sigma + tau, 300.0))
    zeta = min(n * eta / total, 0.5)
    others = math.sqrt(colours - 1) * (1 + eta) ** 2 * n / (total * (1 - zeta) ** 2)
    kappa = eta + (1 + eta) * zeta / (1 - zeta) + others
    error = (0.625 * temper * spread**2 + math.sqrt(lags) * spread * kappa) * growth
    unit = torch.finfo(dtype).eps / 2
    size = lags * n * math.sqrt(max(colours - 1, 1)) / (looking * temper)
    # A key's weight loses log C units beside the sink's.
    rounding = (UNITS + math.log(total)) * unit * size
    return Tempering(temper, truncation=n * error, rounding=rounding)


def best_strengths(task: Task, colours: int, dtype: torch.dtype) -> tuple[float, float]:
    """Return the exponent and strength with the least bound."""
    tempers = [10 ** (-i / 5) for i in range(5, 60)]
    strengths = [10 ** (-j / 5) for j in range(40)]
    pairs = [(temper, looking) for temper in tempers for looking in strengths]
    return min(pairs, key=lambda pair: looking_error(task, colours, pair[0], pair[1], dtype).bound)


def total_weight(length: int, temper: float, looking: float) -> float:
    """Return C, so large that one key's weight takes nothing from the others'."""
    return length**2 / (temper * looking)
