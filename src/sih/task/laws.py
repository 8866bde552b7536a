r"""Distributions of each next token under each hypothesis, where the matrix is known.

Under hypothesis h token i has distribution $P_{s_j,\,\cdot}$ with j its parent, or the
initial distribution if it has no parent. A task makes one `Laws` for given tokens,
which computes shared quantities once: each token's probability under each hypothesis,
and weighted averages of the next token's distributions. `counting.py` is the
counterpart for an unknown matrix.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@runtime_checkable
class Laws(Protocol):
    """Distributions of every token under every hypothesis, given earlier tokens."""

    def log_probabilities(self) -> Float[Tensor, "batch time hypothesis"]:
        """Return each token's log-probability, 0 for a token without a parent."""
        ...

    def mixture(
        self, weights: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time state"]:
        """Return the average distribution of the next token, by these weights."""
        ...


@runtime_checkable
class RowMemory(Protocol):
    """Rows of the matrix under each hypothesis, as known so far."""

    def probability(self, hypothesis: int, parent: int, token: int) -> float:
        """Return the probability of the token after this parent."""
        ...

    def learn(self, hypothesis: int, parent: int, token: int) -> None:
        """Record a transition that was made if the hypothesis (an index) is right."""
        ...

    def law(self, hypothesis: int, parent: int) -> list[float]:
        """Return the distribution of a token with this parent."""
        ...


@dataclass(frozen=True, eq=False)
class RowLaws:
    """Distributions read from a known matrix, one for all sequences or one each."""

    tokens: Int[Tensor, "batch time"]
    parents: Callable[[int], Int[Tensor, "hypothesis time"]]
    P: Float[Tensor, "#batch state state"]
    initial: Float[Tensor, " state"]

    def log_probabilities(self, log_P: Float[Tensor, "#batch state state"] | None = None) -> Tensor:
        """Return the tokens' log-probabilities, read from log P or another table.

        Another table may have, for example, a finite number in place of log 0.
        """
        logs = with_initial(self.P.log() if log_P is None else log_P, self.initial.log()).to(
            self.tokens.device
        )
        parents = self.parents(self.tokens.shape[1])
        out = torch.zeros(
            (*self.tokens.shape, len(parents)), dtype=logs.dtype, device=self.tokens.device
        )
        positions = as_slice(has_parent(parents).nonzero().flatten())
        children = self.tokens[:, positions]
        if children.numel():
            for h, row in enumerate(self._parent_rows(parents[:, positions])):
                out[:, positions, h] = torch.take(logs, row * logs.shape[1] + children)
        return out

    def mixture(
        self, weights: Float[Tensor, "batch time hypothesis"]
    ) -> Float[Tensor, "batch time state"]:
        rows = with_initial(self.P, self.initial).to(self.tokens.device)
        parents = self.parents(self.tokens.shape[1] + 1)[:, 1:]
        law = self.initial.to(self.tokens.device).repeat(*self.tokens.shape, 1)
        positions = as_slice(has_parent(parents).nonzero().flatten())
        if law[:, positions].numel():
            mixed = torch.zeros_like(law[:, positions])
            for h, row in enumerate(self._parent_rows(parents[:, positions])):
                mixed.addcmul_(
                    weights[:, positions, h, None], torch.nn.functional.embedding(row, rows)
                )
            law[:, positions] = mixed
        return law

    def _parent_rows(
        self, parents: Int[Tensor, "hypothesis n"]
    ) -> Iterator[Int[Tensor, "batch n"]]:
        """Yield the row in `with_initial` that each token follows, by hypothesis."""
        states = self.P.shape[-1]
        first = torch.arange(len(self.P), device=self.tokens.device)[:, None] * (states + 1)
        for each in parents:
            if (each >= 0).all():
                row = self.tokens[:, as_slice(each)]
            else:
                row = torch.where(
                    each.to(self.tokens.device) < 0, states, self.tokens[:, each.clamp_min(0)]
                )
            yield row + first if len(self.P) > 1 else row


class KnownRows:
    """Rows of a known matrix, which no transition changes."""

    def __init__(self, P: Float[Tensor, "state state"]) -> None:
        self.rows: list[list[float]] = P.tolist()

    def probability(self, hypothesis: int, parent: int, token: int) -> float:
        return self.rows[parent][token]

    def learn(self, hypothesis: int, parent: int, token: int) -> None:
        pass

    def law(self, hypothesis: int, parent: int) -> list[float]:
        return self.rows[parent]


def with_initial(
    tables: Float[Tensor, "matrix state state"], initial: Float[Tensor, " state"]
) -> Float[Tensor, "row state"]:
    """Return the rows of every matrix, each followed by the initial distribution."""
    return torch.cat([tables, initial.expand(len(tables), 1, -1)], dim=1).flatten(0, 1)


def has_parent(parents: Int[Tensor, "hypothesis time"]) -> Bool[Tensor, " time"]:
    """Return which tokens have a parent under at least one hypothesis."""
    return (parents >= 0).any(dim=0)


def first_with_parent(parents: Int[Tensor, "hypothesis time"]) -> int:
    """Return the first token that has a parent, or 0 if none has one.

    In a task with lags this is max_lag.

    >>> first_with_parent(torch.tensor([[-1, -1, 0, 1], [-1, -1, -1, 0]]))
    2
    """
    return int(has_parent(parents).int().argmax())


def possible(
    log_likelihood: Float[Tensor, "batch time hypothesis"],
) -> Float[Tensor, "batch time hypothesis"]:
    """Return log-likelihoods, or raise a ValueError for an impossible sequence."""
    # likelihoods never rise, so the last position decides
    if torch.isneginf(log_likelihood[:, -1:]).all(dim=-1).any():
        dead = torch.isneginf(log_likelihood).all(dim=-1)
        row = int(dead[:, -1].nonzero()[0])
        begin = int(dead[row].nonzero()[0])
        raise ValueError(
            f"sequence {row} is impossible under every lag of the task from position {begin} on: "
            "each lag has met a transition of probability 0"
        )
    return log_likelihood


def leaders(
    score: Float[Tensor, "batch time hypothesis"],
) -> Bool[Tensor, "batch time hypothesis"]:
    """Return the mask of hypotheses with the largest score, up to rounding."""
    largest = score.amax(dim=-1, keepdim=True)
    return score >= largest - 1e-12 * largest.abs().clamp_min(1.0)


def as_slice(positions: Int[Tensor, " n"]) -> slice | Int[Tensor, " n"]:
    """Return consecutive positions as a slice, which indexes without a copy.

    This makes lags fast.

    >>> as_slice(torch.tensor([4, 5, 6])), as_slice(torch.tensor([4, 6]))
    (slice(4, 7, None), tensor([4, 6]))
    """
    first = int(positions[0]) if len(positions) else 0
    if torch.equal(positions, torch.arange(first, first + len(positions))):
        return slice(first, first + len(positions))
    return positions
