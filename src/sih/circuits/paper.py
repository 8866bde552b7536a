r"""The paper's circuit, Prop. 1: three layers that select the lag, for any set of lags.

    layer 1    $\mathcal A_{n,n-k} = \tilde p_{n,k}$: the share of each lag in token n
    layer 2    head h gathers $\tilde p_{i-o,k}$ over its offsets $o \in C_h$
    layer 3    $w_{i,k} \propto \exp E_{i,k}$ on token i - k + 1, which lag k copies
    readout    $\sum_k w_{i,k} P_{s_{i-k+1}, \cdot}$

$E_{i,k}$ is $\beta$ times the mean, or the sum, of $\tilde p_{n,k}$
(`offset_heads.py`).

Paper: Sec. 5.1, Prop. 1. App. F: the third layer by position. App. G: any lags.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.base.record import Size
from sih.circuits import steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.mask_strength import with_masks
from sih.circuits.offset_heads import (
    Evidence,
    HeadOfOffset,
    OffsetHeads,
    choose_offsets,
    one_residue_each,
)
from sih.circuits.positions import choose
from sih.circuits.rounding import finite, rounding_bounds
from sih.circuits.strengths import OrInfinite, Strength
from sih.task import Task

Third = Literal["mask", "position"]


@dataclass(frozen=True)
class PaperOptions(CircuitOptions):
    """Options of the paper's circuit."""

    third: Third | None = None
    """Form of the third layer: the paper's main form (mask), if every head gathers one
    residue as for contiguous lags, or the appendix's (position), always possible. By
    default mask where possible."""
    heads: Size | None = None
    """Second-layer heads. By default the least number that loses nothing. With fewer,
    some past transitions are ignored."""
    evidence: Evidence = "mean"
    """Whether probabilities p-tilde are averaged (the paper's) or summed."""
    sink: bool | None = None
    """Whether second-layer heads use position 0 as a sink, so that the closed form
    holds from the first possible position on. Always with summed evidence; the paper's
    has none."""
    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    beta: OrInfinite = 100.0
    """Inverse temperature of the third layer; inf for the limit."""
    temper: Strength = 1.0
    """Exponent on the probabilities in the first layer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.evidence == "sum" and self.sink is False:
            raise FieldError(
                "sink", "summed evidence needs the sink: without it a head averages; leave sink out"
            )


@dataclass(frozen=True, kw_only=True)
class PaperCircuit(Circuit):
    """The paper's circuit with all its numbers."""

    target: ClassVar[str] = "paper"
    Options: ClassVar[type[CircuitOptions]] = PaperOptions
    only_heads: ClassVar[str] = ""

    third: Third
    head_of_offset: HeadOfOffset
    """The second-layer head (from 0) of each offset, one period of it; -1 for none."""
    evidence: Evidence

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.second_layer  # which checks head_of_offset

    @classmethod
    def resolve(cls, task: Task, options: PaperOptions, dtype: torch.dtype) -> PaperCircuit:
        sink = options.evidence == "sum" if options.sink is None else options.sink
        head_of_offset = choose_offsets(task.lags, options.heads)
        circuit = cls(
            lags=task.lags,
            length=task.length,
            beta=finite(options.beta, dtype),
            temper=options.temper,
            sink=sink,
            third=choose_third(options.third, head_of_offset, sink=sink),
            head_of_offset=head_of_offset,
            evidence=options.evidence,
        )
        return with_masks(circuit, task, options.lam)

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        steps.attend_to_parents(blocks, task, self)
        self.second_layer.write(blocks, self.masks)
        scores = steps.candidate_scores(self)
        if self.third == "mask":
            read_by_mask(blocks, self)
        else:
            scores = self.second_layer.read(blocks, self, scores)
        blocks.block("3.1", "position", "position").copy_(scores)
        steps.copy_law(blocks, task, self, readout)

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        p = steps.evidence(tokens, task, self)
        return torch.softmax(self.second_layer.scores(p, self.beta), dim=-1)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        heads = self.second_layer
        return steps.expect_layers(tokens, task, self, heads.attention(), heads.first_rows)

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        return rounding_bounds(self, dtype)

    def strength(self) -> float:
        return self.second_layer.strength(self.beta)

    @cached_property
    def second_layer(self) -> OffsetHeads:
        """Return the heads of the second layer."""
        return OffsetHeads.of(self, self.head_of_offset, self.evidence)

    @property
    def model_heads(self) -> tuple[int, int, int]:
        return len(self.exponents), self.second_layer.count, 1

    @property
    def first_exact_position(self) -> int:
        if self.sink:
            return self.max_lag - 1
        ready = max(self.second_layer.first_rows)
        # The mask form reads heads at the candidates too, up to max_lag - 1 back.
        return ready + self.max_lag - 1 if self.third == "mask" else ready

    @property
    def pattern(self) -> tuple[int, ...]:
        return self.head_of_offset

    def describe(self) -> Iterator[str]:
        heads = self.second_layer.describe()
        return self.lines(heads, third=self.third, evidence=self.evidence)


def choose_third(third: Third | None, head_of_offset: tuple[int, ...], *, sink: bool) -> Third:
    """Return the requested form, or the paper's main form where possible."""
    can_be_mask = one_residue_each(head_of_offset) and not sink
    if third == "mask" and not can_be_mask:
        why = "with a sink" if sink else f"for the pattern {head_of_offset}"
        raise FieldError(
            "third",
            "the mask form needs heads that take one residue each and no sink, "
            f"not {why}; use 'position'",
        )
    if third is not None:
        return third
    return "mask" if can_be_mask else "position"


def read_by_mask(blocks: Blocks, circuit: PaperCircuit) -> None:
    r"""Write the main form: $B^{(h)}_{m,m'} = \beta_h\,[(m - m') \bmod R = R - 1]$.

    B connects the values of head h at the query with its attention at the key; R is the
    period. Head h gathers one residue r. So at key j its attention lies on positions m'
    of residue j - r, and sums to 1: B makes it the indicator of the indices m of
    residue j - 1 - r. At $j = i - k + 1$ these are the $m = i - k - o$ with
    $o \in C_h$, the same sum as in the form by position.

    Paper: Sec. 5.1, "Third layer".
    """
    heads = circuit.second_layer
    index = torch.arange(circuit.length)[:, None]
    place = torch.arange(circuit.length)[None, :]
    one_less = (index - place) % heads.period == heads.period - 1
    for head, factor in enumerate(heads.factors(circuit.beta), start=1):
        B = choose(one_less, factor, 0.0)
        blocks.block("3.1", f"2.{head}/1.1/position", f"2.{head}/position").copy_(B)
