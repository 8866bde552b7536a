r"""Second-layer heads that mix lags without loss: fewer heads suffice.

Every head gathers every offset o, with a weight $u_h(o) > 0$, so that head h stores
$\sum_{o + k' = n} u_h(o)\, q_{i-o,k'}$ at index i - n, q the centred evidence. The
third layer reads this by $g_h$ at the query, and by $\bar g_h$ at the key. Lag k then
scores $\sum_o F_o q_{i-o}$, and that is the sum of the evidence iff $J F_o J = J$ for
every o (`sih.heads.profiles`, where a `Profile` holds u, g and $\bar g$).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sih.circuits.any_circuit import Blocks
from sih.circuits.circuit import Circuit
from sih.circuits.masks import Masks
from sih.circuits.positions import gaps
from sih.circuits.steps import read_at_query
from sih.circuits.tempering import column_spread
from sih.heads.profiles import Profile
from sih.task import Task

LOGS_FROM = 1e-300
"""The least weight of which a logarithm is taken."""


@dataclass(frozen=True)
class MixedHeads:
    """Second-layer heads that mix lags: their weights on the past, and the third
    layer's reads.
    """

    profile: Profile

    @property
    def count(self) -> int:
        """Return the number of heads."""
        return self.profile.heads

    @property
    def first_rows(self) -> list[int]:
        """Return the first row at which each head is right: 0, with a sink."""
        return [0] * self.count

    @property
    def sums_to(self) -> list[float]:
        """Return C of each head: 1 over the weight of a transition that counts 1."""
        totals: list[float] = self.profile.totals.tolist()
        return totals

    @property
    def size(self) -> float:
        """Return a bound on the sum of all heads, in transitions."""
        return self.profile.size

    def strength(self, beta: float) -> float:
        """Return the largest difference that the reads make between two keys' scores.

        Reads have both signs, and so does the correction in the position block: four
        times.
        """
        return beta * self.size * 4

    def write(self, blocks: Blocks, masks: Masks) -> None:
        """Write layer 2: scores are logarithms of weights, and the sink has the rest."""
        for head, weights in enumerate(self.attention(), start=1):
            logs = weights.clamp_min(LOGS_FROM).log()
            scores = torch.where(weights > 0, logs, masks.forbid)
            blocks.block(f"2.{head}", "position", "position").copy_(scores)

    def attention(self) -> Float[Tensor, "head query key"]:
        """Return the attention that `write` makes: $u_h(o) / C_h$, and the sink."""
        gap = gaps(self.profile.length)
        made = (gap >= 0) & (torch.arange(self.profile.length) >= self.profile.lags[-1])
        last = self.profile.weights.shape[1] - 1
        weights = torch.where(made, self.profile.weights[:, gap.clamp(0, last)], 0.0)
        weights = weights / self.profile.totals[:, None, None]
        weights[:, :, 0] = 1 - weights.sum(dim=-1)
        return weights

    def read(
        self, blocks: Blocks, circuit: Circuit, scores: Float[Tensor, "query key"]
    ) -> Float[Tensor, "query key"]:
        r"""Write layer 3's reads, and return the correction for the position block.

        $B_h = \beta C_h\, g_h(j - m - 1)$ connects the values of head h at the query
        with the key's position, and $\beta C_h\, \bar g_h(i - m)$ connects the query's
        position with the values of head h at the key.

        The first layer stores $\tilde p = 1/K + (\gamma/K)\, q$ with $\sum_k q_k = 0$,
        so with $\beta = K / \gamma$ the score of lag k is $\sum_o F_o q_{i-o}$ plus the
        contribution of 1/K and the sink, $(A_h b) B_h$. Here A_h is the attention, and
        b that of the first layer with 1/K for every $\tilde p$. The contribution
        depends on i and j alone, and is subtracted at every pair, including masked
        ones. (Two first-layer heads of opposite sign cancel it themselves.)
        """
        neutral = self.neutral_first_layer()
        for head, weights in enumerate(self.attention()):
            factor = circuit.beta * self.sums_to[head]
            at_query = factor * self.profile.query_blocks[head]
            at_key = factor * self.profile.key_blocks[head]
            read_at_query(blocks, circuit, f"2.{head + 1}", at_query)
            if self.profile.key is not None:
                for source, share in circuit.shares.items():
                    gathered = f"2.{head + 1}/{source}/position"
                    blocks.block("3.1", "position", gathered).copy_(share * at_key)
            if not circuit.symmetric:
                gathered_of_neutral = weights @ neutral
                scores = scores - (gathered_of_neutral @ at_query + at_key @ gathered_of_neutral.T)
        return scores

    def neutral_first_layer(self) -> Float[Tensor, "query key"]:
        r"""Return the first layer's attention with 1/K for every $\tilde p$."""
        lags, length = self.profile.lags, self.profile.length
        attention = torch.zeros(length, length, dtype=torch.float64)
        attention[0, 0] = 1.0
        made = torch.arange(lags[-1], length)
        for lag in lags:
            attention[made, made - lag] = 1 / len(lags)
        return attention

    def scores(
        self, p: Float[Tensor, "batch time lag"], beta: float
    ) -> Float[Tensor, "batch time lag"]:
        r"""Return $\beta \sum_o J F_o J\, p_{i-o}$, up to a term common to all lags.

        It is the sum of p, plus the deviations of F from it by fast convolution.
        """
        time = p.shape[1]
        if time > self.profile.length:
            raise ValueError(
                f"the circuit's weights are for {self.profile.length} tokens; got {time}"
            )
        deviations = self.profile.deviations.to(p.device)
        filters = torch.fft.rfft(deviations, n=2 * time, dim=0)
        waves = torch.fft.rfft(p, n=2 * time, dim=1).to(filters.dtype)
        moved = torch.einsum("fkl,bfl->bfk", filters, waves)
        off: Tensor = torch.fft.irfft(moved, n=2 * time, dim=1)[:, :time]
        return beta * (p.cumsum(dim=1) + off)

    def mixing(self, task: Task, temper: float, dtype: torch.dtype) -> float:
        """Return a bound on the change of the log-odds caused by mixed lags."""
        spread = column_spread(task, dtype)
        return self.profile.log_odds_error(spread * math.exp(min(temper * spread, 700.0)))

    def describe(self) -> str:
        """Return one line that describes the heads."""
        off = self.profile.residual.max().item()
        return (
            f"{self.count} second-layer head(s), in which lags mix; "
            f"a transition counts as it should up to {off:.1e}, whatever P is"
        )
