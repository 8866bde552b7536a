r"""The paper's single head for two lags $\bar k < \hat k$, read at the keys.

With $d = \hat k - \bar k$ the one head of layer 2 gathers the offsets $o \bmod 2d < d$.
The keys of the two lags are d apart, so their offsets are complementary. Together they
cover every transition except the newest $\bar k - 1$. The score of lag k, whose key is
$j = i - k + 1$, is

$$ E_{i,k} = \frac{\beta}{n(j)}
   \sum_{o \bmod 2d < d} (\tilde p_{j-o,k} - \tilde p_{j-o,k'}). $$

Paper: App. H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.errors import FieldError
from sih.circuits import steps
from sih.circuits.any_circuit import Blocks, Bounds, CircuitOptions, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.mask_strength import with_masks
from sih.circuits.offset_heads import OffsetHeads
from sih.circuits.positions import choose, shifted
from sih.circuits.rounding import finite, rounding_bounds
from sih.circuits.strengths import OrInfinite, Strength
from sih.task import Task


@dataclass(frozen=True)
class TwoLagOptions(CircuitOptions):
    """Options of the circuit for two lags."""

    lam: Strength | None = None
    """Strength of the masks. By default 500, or more if the scores need it."""
    beta: OrInfinite = 100.0
    """Inverse temperature of the third layer; inf for the limit."""
    temper: Strength = 1.0
    """Exponent on the probabilities in the first layer."""


@dataclass(frozen=True, kw_only=True)
class TwoLagCircuit(Circuit):
    """The circuit for two lags, with all its numbers."""

    target: ClassVar[str] = "two-lags"
    Options: ClassVar[type[CircuitOptions]] = TwoLagOptions
    only_heads: ClassVar[str] = "the paper's one head for two lags, read at the key"

    @classmethod
    def resolve(cls, task: Task, options: TwoLagOptions, dtype: torch.dtype) -> TwoLagCircuit:
        if len(task.lags) != 2:
            raise FieldError(
                "target", f"the target 'two-lags' is for two lags, e.g. (1, 3); got {task.lags}"
            )
        beta = finite(options.beta, dtype)
        circuit = cls(lags=task.lags, length=task.length, beta=beta, temper=options.temper)
        return with_masks(circuit, task, options.lam)

    def write(self, blocks: Blocks, task: Task, readout: str) -> None:
        steps.attend_to_parents(blocks, task, self)
        self.second_layer.write(blocks, self.masks)
        blocks.block("3.1", "position", "2.1/1.1/position").copy_(self.reads())
        blocks.block("3.1", "position", "position").copy_(steps.candidate_scores(self))
        steps.copy_law(blocks, task, self, readout)

    def reads(self) -> Float[Tensor, "query index"]:
        r"""Return B, with which a query reads the values of the head at the key.

        $B_{i,m} = \beta$ if $(i - m + 1 - 2 \bar k) \bmod 2d < d$, else $-\beta$, for m
        < i.

        The head contains $\tilde p_{j-o,k'}$ at the index $m = j - o - k'$, where
        $i - m + 1 - 2 \bar k = o + (k - \bar k) + (k' - \bar k)$. The head gathers
        $o \bmod 2d < d$, and each bracket is 0 or d. So k' = k counts positively, the
        other lag negatively.
        """
        query = torch.arange(self.length)[:, None]
        index = torch.arange(self.length)[None, :]
        plus = (query - index + 1 - 2 * self.lags[0]) % (2 * self.distance) < self.distance
        return choose(plus, self.beta, -self.beta) * (index < query)

    def weights(
        self, tokens: Int[Tensor, "batch time"], task: Task
    ) -> Float[Tensor, "batch time lag"]:
        (gathered,) = self.second_layer.sums(steps.evidence(tokens, task, self))
        seen = self.second_layer.transitions(tokens.shape[1]).to(gathered.device)
        at_key = self.beta * (gathered - gathered.flip(-1)) / seen.clamp_min(1)
        shorter, longer = at_key[..., :1], at_key[..., 1:]
        scores = [shifted(shorter, self.lags[0] - 1), shifted(longer, self.lags[1] - 1)]
        return torch.softmax(torch.cat(scores, dim=-1), dim=-1)

    def expected(self, tokens: Int[Tensor, "batch time"], task: Task) -> Iterator[Expected]:
        heads = self.second_layer
        return steps.expect_layers(tokens, task, self, heads.attention(), heads.first_rows)

    def bounds(self, task: Task, dtype: torch.dtype) -> Bounds:
        return rounding_bounds(self, dtype)

    def strength(self) -> float:
        return 2 * self.beta  # B has both signs

    @property
    def distance(self) -> int:
        """Return d, the distance of the two lags."""
        return self.lags[1] - self.lags[0]

    @cached_property
    def second_layer(self) -> OffsetHeads:
        """Return the one head of the second layer: d offsets of every 2d."""
        return OffsetHeads.of(self, self.pattern, "mean")

    @property
    def pattern(self) -> tuple[int, ...]:
        return (0,) * self.distance + (-1,) * self.distance

    @property
    def model_heads(self) -> tuple[int, int, int]:
        return 1, 1, 1

    @property
    def first_exact_position(self) -> int:
        # The older key is max_lag - 1 back, and needs a transition of its own.
        return 2 * self.max_lag - 1

    def describe(self) -> Iterator[str]:
        heads = self.second_layer.describe(complete=True)
        return self.lines(heads, third="key", evidence="mean")
