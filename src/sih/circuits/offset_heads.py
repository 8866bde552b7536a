r"""Second-layer heads that divide the past: head h gathers the offsets $C_h$.

At query i, head h attends to the positions $i - o$ with $o \in C_h$ that a transition
made: $n_h(i)$ of them, each with the weight $1 / C$. Position n holds $\tilde p_{n,k}$
at index n - k, so the head has $\tilde p_{i-o,k}$ at index $i - o - k$.

**Nothing mixes.** Two of these share an index only if $o + k = o' + k'$, that is if two
offsets of the head differ by a difference of two lags. `least_heads` rules that out.

**The weight of a transition.** With a factor $\beta_h$ of the third layer the score of
lag k is $E_{i,k} = \sum_h \frac{\beta_h}{C} \sum_{o \in C_h} \tilde p_{i-o,k}$, where

| evidence | sink | $C$ | $\beta_h$ | a transition counts |
|---|---|---|---|---|
| mean, the paper's | no | $n_h(i)$ | $\beta w_h$ | $\beta w_h / n_h(i)$ |
| mean, Prop. 1's | yes | $\sum_h n_h(i)$ | $\beta$ | $\beta / \sum_h n_h(i)$ |
| sum | yes | $n_h(T - 1)$ | $\beta C$ | $\beta$ |

and $w_h$ is the head's number of offsets over the average head's. Without a sink, a
head with no transition attends uniformly to the past, which spoils the first rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import AtLeast, Below
from sih.circuits.any_circuit import Blocks
from sih.circuits.circuit import Circuit
from sih.circuits.masks import Masks
from sih.circuits.positions import choose, gaps, shifted
from sih.circuits.steps import read_at_query
from sih.heads.fewer import head_offsets
from sih.heads.least import least_heads
from sih.task import Task

Evidence = Literal["mean", "sum"]
HeadOfOffset = tuple[Annotated[int, AtLeast(-1), Below(2**31)], ...]


@dataclass(frozen=True)
class OffsetHeads:
    """Second-layer heads, each with its offsets, and the weight of a transition."""

    head_of_offset: tuple[int, ...]
    """The head (from 0) of each offset, one period of it; -1 for none."""
    length: int
    max_lag: int
    evidence: Evidence
    sink: bool

    def __post_init__(self) -> None:
        if max(self.head_of_offset, default=-1) < 0:
            raise FieldError("head_of_offset", "head_of_offset must have a head for one offset")

    @classmethod
    def of(
        cls, circuit: Circuit, head_of_offset: tuple[int, ...], evidence: Evidence
    ) -> OffsetHeads:
        """Return the heads of a circuit with these offsets."""
        return cls(head_of_offset, circuit.length, circuit.max_lag, evidence, circuit.sink)

    @property
    def count(self) -> int:
        """Return the number of heads."""
        return max(self.head_of_offset) + 1

    @property
    def period(self) -> int:
        """Return the period of `head_of_offset`."""
        return len(self.head_of_offset)

    @property
    def first_rows(self) -> list[int]:
        """Return the first row at which each head is right."""
        if self.sink:
            return [0] * self.count
        return [self.max_lag + self.head_of_offset.index(head) for head in range(self.count)]

    def head_at(self, offsets: Int[Tensor, "*shape"]) -> Int[Tensor, "*shape"]:
        """Return the head of each offset, including negative ones; -1 for none."""
        return torch.tensor(self.head_of_offset)[offsets % self.period]

    def transitions(self, time: int | None = None) -> Int[Tensor, "time head"]:
        """Return $n_h(i)$, the number of transitions that head h gathers at position i."""
        time = self.length if time is None else time
        offsets = self.head_at(torch.arange(max(time - self.max_lag, 0)))
        taken = torch.nn.functional.one_hot(offsets + 1, self.count + 1)[:, 1:]
        none_yet = torch.zeros((min(time, self.max_lag), self.count), dtype=torch.int64)
        return torch.cat([none_yet, taken.cumsum(dim=0)])

    def totals(self, time: int | None = None) -> Int[Tensor, "time head"]:
        """Return C: a transition has weight 1 / C in the head's attention."""
        seen = self.transitions(time)
        if self.evidence == "sum":
            return self.transitions()[-1].clamp_min(1).expand_as(seen)
        if self.sink:
            return seen.sum(dim=-1, keepdim=True).expand_as(seen)
        return seen

    def factors(self, beta: float) -> list[float]:
        r"""Return $\beta_h$, the factor with which the third layer reads each head."""
        if self.evidence == "sum":
            return [beta * total for total in self.sums_to]
        if self.sink:
            return [beta] * self.count
        taken = [self.head_of_offset.count(head) for head in range(self.count)]
        return [beta * (number * self.count / sum(taken)) for number in taken]

    @property
    def sums_to(self) -> list[float]:
        """Return C of each head for summed evidence: 1 over a transition's weight."""
        return [float(count) for count in self.transitions()[-1].clamp_min(1)]

    @property
    def size(self) -> float:
        """Return a bound on the sum of all heads, in transitions."""
        if self.evidence == "sum":
            return sum(self.sums_to)
        return float(self.count)

    def strength(self, beta: float) -> float:
        """Return the largest difference that the reads make between two keys' scores."""
        return beta * self.size

    def write(self, blocks: Blocks, masks: Masks) -> None:
        r"""Write layer 2: each head attends to its keys, and position 0 takes the rest.

        With a sink, n keys of score 0 and position 0 with the score $\log(C - n)$ add
        up to $n + (C - n) = C$, so every key has the weight 1 / C exactly, also where
        there are many, few or none.

        Paper: Sec. 5.1, "Second layer"; App. G for any lags.
        """
        totals = self.totals()
        left = torch.where(totals > 0, totals - self.transitions(), 1)
        logs = left.clamp_min(1).double().log()
        at_sink = torch.where(left > 0, masks.allow + logs, masks.forbid)
        for head, keys in enumerate(self.keys()):
            scores = choose(keys, *masks)
            if self.sink:
                scores[:, 0] = at_sink[:, head]
            blocks.block(f"2.{head + 1}", "position", "position").copy_(scores)

    def attention(self) -> Float[Tensor, "head query key"]:
        """Return the attention that `write` creates: 1 / C for each key, and the sink."""
        weights = self.keys().double() / self.totals().T[:, :, None].clamp_min(1)
        if self.sink:
            weights[:, :, 0] = 1 - weights.sum(dim=-1)
        return weights

    def at_sink(self) -> Float[Tensor, "time head"]:
        """Return the attention to position 0."""
        totals = self.totals().double()
        return torch.where(totals > 0, 1 - self.transitions() / totals.clamp_min(1), 1.0)

    def keys(self) -> Bool[Tensor, "head query key"]:
        """Return the mask of keys that each head gathers: its offsets, where a
        transition exists.
        """
        gap = gaps(self.length)
        made = torch.arange(self.length) >= self.max_lag
        head_at = torch.where((gap >= 0) & made, self.head_at(gap), -1)
        return head_at == torch.arange(self.count)[:, None, None]

    def read(
        self, blocks: Blocks, circuit: Circuit, scores: Float[Tensor, "query key"]
    ) -> Float[Tensor, "query key"]:
        r"""Write the third layer's reads by position, and return the correction of the
        scores.

        $B^{(h)}_{m,j} = \beta_h\,[c(j - 1 - m) = h]$ for m < j.

        B connects the values of head h at the query with the key's position. At the
        candidate of lag k, $j = i - k + 1$, the index $m = i - k - o$ counts for just
        the offsets of the head, $o \in C_h$. It contains $\tilde p_{i-o,k}$ and nothing
        else, since any other $\tilde p_{i-o',k'}$ there would have $o' + k' = o + k$.
        So the score is $\beta_h$ times the sum over $C_h$, times the weight of a key.
        (If every head gathers one residue, B may repeat above m = j - 1, as the paper
        prints it.)

        *A sink* leaves its own position at index 0, with a weight that depends on i and
        h alone. Index 0 counts at key j for the head $c(j - 1)$; this is subtracted in
        the position block. (Two first-layer heads of opposite sign cancel it
        themselves.)
        """
        index = torch.arange(circuit.length)[:, None]
        key = torch.arange(circuit.length)[None, :]
        head_at = self.head_at(key - 1 - index)
        if circuit.sink or not one_residue_each(self.head_of_offset):
            head_at = torch.where(index < key, head_at, -1)
        at_sink = self.at_sink()
        for head, factor in enumerate(self.factors(circuit.beta)):
            B = choose(head_at == head, factor, 0.0)
            read_at_query(blocks, circuit, f"2.{head + 1}", B)
            if circuit.sink and not circuit.symmetric:
                reads_sink = head_at[0] == head
                scores = scores - factor * at_sink[:, head, None] * reads_sink
        return scores

    def sums(self, p: Float[Tensor, "batch time lag"]) -> list[Float[Tensor, "batch time lag"]]:
        r"""Return $\sum_{o \in C_h} \tilde p_{i-o,k}$, one tensor per head."""
        every_period = strided_sums(p, self.period)
        sums = [torch.zeros_like(p) for _ in range(self.count)]
        for offset, head in enumerate(self.head_of_offset):
            if head >= 0:
                sums[head] = sums[head] + shifted(every_period, offset)
        return sums

    def scores(
        self, p: Float[Tensor, "batch time lag"], beta: float
    ) -> Float[Tensor, "batch time lag"]:
        """Return E by the module's formula, in time positions x lags x period."""
        scores = torch.zeros_like(p)
        if self.evidence == "sum":
            return beta * sum(self.sums(p), scores)
        totals = self.totals(p.shape[1]).to(p.device).clamp_min(1)
        for head, (factor, gathered) in enumerate(
            zip(self.factors(beta), self.sums(p), strict=True)
        ):
            scores += factor * gathered / totals[:, head, None]
        return scores

    @property
    def unused(self) -> bool:
        """Return whether some past transitions are ignored."""
        return -1 in self.head_of_offset

    def mixing(self, task: Task, temper: float, dtype: torch.dtype) -> float | None:
        """Return the change of the log-odds by mixed lags: 0, or None if transitions
        are ignored.
        """
        return None if self.unused else 0.0

    def describe(self, *, complete: bool = False) -> str:
        """Return one line on the offsets of each head.

        Args:
            complete: whether the key's heads gather the offsets that the query's heads
                omit.
        """
        heads = " ".join("·" if head < 0 else str(head + 1) for head in self.head_of_offset)
        unused = self.head_of_offset.count(-1) / self.period
        lost = f"; {unused:.0%} of past transitions go unused" if unused and not complete else ""
        return (
            f"{self.count} second-layer head(s), offsets 0, 1, 2, ... go to head {heads} "
            f"(and again){lost}"
        )


def one_residue_each(head_of_offset: tuple[int, ...]) -> bool:
    """Return whether every head gathers one residue of the period, as for lags 1 .. K."""
    taken = [head for head in head_of_offset if head >= 0]
    return len(taken) == len(set(taken))


def choose_offsets(lags: tuple[int, ...], heads: int | None) -> tuple[int, ...]:
    """Return the head of each offset, with the fewest heads or this many."""
    if heads is None:
        return least_heads(lags).colours
    return head_offsets(lags, heads).colours


def strided_sums(
    p: Float[Tensor, "batch time lag"], stride: int
) -> Float[Tensor, "batch time lag"]:
    r"""Return $\sum_{t \ge 0} p_{n - t \cdot \text{stride}}$ at every n."""
    size, time, width = p.shape
    rows = math.ceil(time / stride)
    padded = torch.zeros((size, rows * stride, width), dtype=p.dtype, device=p.device)
    padded[:, :time] = p
    sums = padded.view(size, rows, stride, width).cumsum(dim=1)
    return sums.reshape(size, rows * stride, width)[:, :time]
