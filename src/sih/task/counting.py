r"""Predictive distributions of tokens under an unknown matrix with Dirichlet rows.

Given the lag, the rows of P have independent Dirichlet($\alpha, \ldots, \alpha$)
priors. Their posteriors after any transitions are Dirichlet, too. With $n_{ab}$
transitions from a to b seen so far, and $n_a = \sum_b n_{ab}$,

$$\mathbb{P}(X_{i+1} = b \mid X_{\le i}) = \frac{n_{ab} + \alpha}{n_a + |\mathcal{S}|\,\alpha},$$

a being the state of the next token's parent. The product of these along a sequence is
its Dirichlet-multinomial marginal likelihood.

All sequences are counted at once. Positions are sorted by state, in order within each
state, so that the transitions made before are a running sum. One sort serves all lags,
since the child of position p under lag k is token p + k.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

EXACT = 2**24
"""Whole numbers up to this are exact in float32."""


def transition_counts(
    tokens: Int[Tensor, "batch time"], lags: tuple[int, ...], num_states: int
) -> Iterator[Float[Tensor, "batch next state"]]:
    r"""Yield, for each lag, the transition counts $n_{ab}$ from the parent's state a,
    by b.

    There is one row of counts for each token from max_lag on, and one for the token
    after the last: T - max_lag + 1 rows. None of the first max_lag tokens counts as a
    child, whatever the lag.
    """
    (size, time), first = tokens.shape, lags[-1]
    device, flat = tokens.device, tokens.flatten()
    small = (
        np.uint16 if num_states <= 2**16 else np.int64
    )  # NumPy's stable sort is linear for small integers
    order = torch.from_numpy(tokens.cpu().numpy().astype(small).argsort(axis=1, kind="stable")).to(
        device
    )
    row = torch.arange(size, device=device)[:, None]
    position, order = order.flatten(), (order + row * time).flatten()
    place = (
        torch.empty_like(order)
        .scatter_(0, order, torch.arange(len(order), device=device))
        .view(size, time)
    )
    group = tokens + row * num_states  # groups the tokens of one state in one sequence
    starts = torch.bincount(group.flatten(), minlength=size * num_states).cumsum(dim=0)
    starts = torch.nn.functional.pad(starts, (1, 0))[:-1]
    dtype = torch.float32 if len(flat) < EXACT else torch.float64
    for lag in lags:
        counts = position >= first - lag  # children beyond the end are never read
        children = flat.index_select(0, (order + lag).clamp_max_(len(flat) - 1))
        before = torch.zeros((len(flat) + 1, num_states), dtype=dtype, device=device)
        before[1:].scatter_(1, children[:, None], counts[:, None].to(dtype))
        torch.cumsum(before, dim=0, out=before)
        parents = slice(first - lag, time - lag + 1)
        at_start = torch.nn.functional.embedding(starts[group[:, parents]], before)
        yield torch.nn.functional.embedding(place[:, parents], before).sub_(at_start)


@dataclass(frozen=True, eq=False)
class CountLaws:
    """Posterior predictive distributions of the tokens, by lag."""

    tokens: Int[Tensor, "batch time"]
    lags: tuple[int, ...]
    num_states: int
    concentration: float

    @cached_property
    def counts(self) -> list[Float[Tensor, "batch next state"]]:
        """Return, for each lag, the transitions seen from each token's parent."""
        if self.tokens.shape[1] < self.lags[-1]:
            return [
                self.tokens.new_zeros((len(self.tokens), 0, self.num_states)).double()
                for _ in self.lags
            ]
        return list(transition_counts(self.tokens, self.lags, self.num_states))

    @cached_property
    def totals(self) -> list[Float[Tensor, "batch next"]]:
        return [counts.sum(dim=-1, dtype=torch.float64) for counts in self.counts]

    def log_probabilities(self) -> Float[Tensor, "batch time hypothesis"]:
        alpha, every = self.concentration, self.num_states * self.concentration
        return self._of_tokens(lambda n, total: (n + alpha).div_(total + every).log_())

    def plug_in_gains(self) -> Float[Tensor, "batch time hypothesis"]:
        r"""Return by how much each token raises $\sum_{ab} n_{ab} \log \hat P_{ab}$.

        This is the likelihood of the estimate
        $\hat P_{ab} = (n_{ab} + \alpha) / (n_a + |\mathcal{S}|\,\alpha)$, with the
        counts at each time. Each new estimate scores all transitions again.
        """

        def term(n: Tensor, extra: float) -> Tensor:
            return torch.xlogy(n + 1, n + 1 + extra) - torch.xlogy(n, n + extra)

        alpha, every = self.concentration, self.num_states * self.concentration
        return self._of_tokens(lambda n, total: term(n, alpha) - term(total, every))

    def mixture(
        self, weights: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time state"]:
        alpha, first = self.concentration, self.lags[-1]
        law = torch.full(
            (*self.tokens.shape, self.num_states), 1 / self.num_states, dtype=torch.float64
        )
        law = law.to(self.tokens.device)
        if self.tokens.shape[1] >= first:
            every = self.num_states * alpha
            shares = [
                weights[:, first - 1 :, h] / (total + every) for h, total in enumerate(self.totals)
            ]
            mixed = (alpha * torch.stack(shares).sum(dim=0))[..., None].repeat(
                1, 1, self.num_states
            )
            for share, counts in zip(shares, self.counts, strict=True):
                mixed.addcmul_(share[..., None], counts)
            law[:, first - 1 :] = mixed
        return law

    def _of_tokens(
        self, function: Callable[[Tensor, Tensor], Tensor]
    ) -> Float[Tensor, "batch time hypothesis"]:
        """Return a function of n_ab and n_a for tokens with a parent, else 0."""
        first, shape = self.lags[-1], (*self.tokens.shape, len(self.lags))
        out = torch.zeros(shape, dtype=torch.float64, device=self.tokens.device)
        children = self.tokens[:, first:, None]
        for h, (counts, total) in enumerate(zip(self.counts, self.totals, strict=True)):
            if children.numel():
                made = counts[:, :-1].gather(-1, children).squeeze(-1).double()
                out[:, first:, h] = function(made, total[:, :-1])
        return out


class CountedRows:
    """Transition counts under each hypothesis, updated one token at a time."""

    def __init__(self, hypotheses: int, num_states: int, concentration: float) -> None:
        self.alpha, self.every = concentration, num_states * concentration
        self.counts = [[[0] * num_states for _ in range(num_states)] for _ in range(hypotheses)]
        self.totals = [[0] * num_states for _ in range(hypotheses)]

    def probability(self, hypothesis: int, parent: int, token: int) -> float:
        return (self.counts[hypothesis][parent][token] + self.alpha) / (
            self.totals[hypothesis][parent] + self.every
        )

    def learn(self, hypothesis: int, parent: int, token: int) -> None:
        self.counts[hypothesis][parent][token] += 1
        self.totals[hypothesis][parent] += 1

    def law(self, hypothesis: int, parent: int) -> list[float]:
        total = self.totals[hypothesis][parent] + self.every
        return [(count + self.alpha) / total for count in self.counts[hypothesis][parent]]
