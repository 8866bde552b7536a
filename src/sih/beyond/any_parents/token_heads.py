r"""Tokens that may share a second-layer head if hypotheses are any parents, and the
least number of heads.

Layer 1 stores token n's evidence for a hypothesis at the index of its parent under it.
Let $L_n(m)$ be the hypotheses under which m is the parent of n. At index m a head sums
the evidence of all tokens that it gathers, and a reader of hypothesis h multiplies the
sum by one number. Token n needs that number to be $[h \in L_n(m)] / |L_n(m)|$, so

**tokens n and n' may share a head iff** $L_n(m) = L_{n'}(m)$ **at every index m that is
a parent of both.**

Children of one parent under the same hypotheses never clash. For lags this is the rule
of `least.py`: m = n - k = n' - k' with other lags k, k' means that n and n' differ by a
difference of two lags. A token with the same parent under all hypotheses has no
evidence, and no head gathers it. The least number of heads is the chromatic number of
this graph.

**One third-layer head** reads hypothesis h at row i from the key
$\mathrm{parent}_h(i+1)$, and a key stands for other hypotheses at other rows, while the
number by which index m is read at key j cannot know the row. So heads must also tell
rows apart: pairs (row, token) are assigned, and two may share a head iff no index m and
key j that they have in common ask for different numbers. In one row that is the rule
above, so no fewer heads will do than for tokens alone.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int
from torch import Tensor

from sih.heads.colouring import Budget, OutOfBudgetError, colour, in_order, members
from sih.heads.least import LowerBoundProof

STEPS = 20_000
"""Steps of the search for each number of heads; they are counted, so that the answer is
the same on every machine."""


@dataclass(frozen=True)
class TokenHeads:
    """A second-layer head for each token, -1 for tokens without evidence, with a proof
    that fewer than `lower` fail.
    """

    colours: tuple[int, ...]
    certificate: LowerBoundProof

    @property
    def heads(self) -> int:
        return max(self.colours, default=-1) + 1

    @property
    def lower(self) -> int:
        return self.certificate.heads

    @property
    def exact(self) -> bool:
        return self.lower == self.heads


def token_heads(parents: Int[Tensor, "hypothesis time"]) -> TokenHeads:
    """Return few second-layer heads for a table of parents, each token in one of them,
    and a lower bound.

    The search is exhaustive up to `STEPS` steps for each number of heads. If it ends
    earlier, the number is the least.

    >>> import torch
    >>> found = token_heads(torch.tensor([[-1, 0, 1, 2, 3], [-1, 0, 0, 1, 2]]))
    >>> found.colours, found.lower
    ((-1, -1, 0, 1, 0), 2)
    """
    tokens = [n for n, at in enumerate(parents.T.tolist()) if min(at) >= 0 and len(set(at)) > 1]
    adjacent = _clashes([parents[:, n].tolist() for n in tokens])
    clique = _clique(adjacent)
    proof = LowerBoundProof("clique", len(clique), tuple(tokens[v] for v in clique))
    best = _first_fit(adjacent)
    for heads in range(len(clique), max(best, default=-1) + 1):
        try:
            found = colour(
                adjacent, heads, Budget(STEPS), fixed=[(v, k) for k, v in enumerate(clique)]
            )
        except OutOfBudgetError:
            continue
        if found is not None:
            best = list(in_order(found))
            break
        proof = LowerBoundProof("exhaustion", heads + 1, tuple(tokens))
    colours = [-1] * parents.shape[1]
    for n, head in zip(tokens, best, strict=True):
        colours[n] = head
    return TokenHeads(tuple(colours), proof)


def pair_heads(parents: Int[Tensor, "hypothesis next"]) -> tuple[tuple[int, ...], ...]:
    """Return heads for the tokens of each row, -1 for none, such that one third-layer
    head can read them.

    The search goes row by row, the newest token first. Each token goes to the first
    head whose reads allow it. For lags this yields the pattern of offsets of
    `least_heads`. The number of heads suffices, but may not be the least. A row with
    one next parent under all hypotheses needs no evidence.
    """
    table, length = parents.numpy(), parents.shape[1] - 1
    reads = np.full(
        (0, length, length), -1, dtype=np.int16
    )  # |L(m)| if an index is read at a key, otherwise 0
    rows = np.full((length, length), -1)
    for i, n in ((row, row - back) for row in range(length) for back in range(row)):
        at, keys = table[:, n], table[:, i + 1]
        if min(at.min(), keys.min()) < 0 or (at == at[0]).all() or (keys == keys[0]).all():
            continue
        same = (at[:, None] == at).astype(np.int16)
        wanted = same * same.sum(axis=1, keepdims=True)
        held = reads[:, at[:, None], keys]
        fits = ((held < 0) | (held == wanted)).all(axis=(1, 2)).nonzero()[0]
        if not len(fits):
            reads = np.concatenate([reads, np.full((1, length, length), -1, dtype=np.int16)])
        head = int(fits[0]) if len(fits) else len(reads) - 1
        reads[head, at[:, None], keys] = wanted
        rows[i, n] = head
    return tuple(tuple(row) for row in rows.tolist())


def _clashes(parents: list[list[int]]) -> list[int]:
    """Return the neighbours of each token, as bits: those with which it cannot share a
    head.
    """
    labels = [
        {m: frozenset(h for h, other in enumerate(at) if other == m) for m in at} for at in parents
    ]
    adjacent = [0] * len(labels)
    for v, mine in enumerate(labels):
        for w, other in enumerate(labels[:v]):
            if any(other.get(m, label) != label for m, label in mine.items()):
                adjacent[v] |= 1 << w
                adjacent[w] |= 1 << v
    return adjacent


def _clique(adjacent: list[int]) -> list[int]:
    """Return many tokens that all clash: starting from each, the token with most
    candidates left joins.
    """
    best: list[int] = []
    for v, candidates in enumerate(adjacent):
        clique = [v]
        while candidates:
            v = max(members(candidates), key=lambda w: ((adjacent[w] & candidates).bit_count(), -w))
            clique.append(v)
            candidates &= adjacent[v]
        best = max(best, clique, key=len)
    return best


def _first_fit(adjacent: list[int]) -> list[int]:
    """Return for each token the first head without a neighbour."""
    heads: list[int] = []
    for v, neighbours in enumerate(adjacent):
        taken = {heads[w] for w in members(neighbours) if w < v}
        heads.append(next(k for k in range(len(taken) + 1) if k not in taken))
    return heads
