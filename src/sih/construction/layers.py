r"""The three layers' weights, block by block, each with the proof of what it computes.

Positions count from 0: a transition of lag k into token n comes from token n - k, and the tokens from max_lag on were
made by a transition. A mask adds `allow` to the score of a wanted pair of positions and `forbid` to that of an
unwanted one. In the paper they are +lam and -lam; softmax sees only the difference, and 0 and -2 lam leave the other
terms their digits.
"""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.construction.circuit import ZERO, Circuit, log_probabilities, one_residue_a_head
from sih.task import Task


@runtime_checkable
class Blocks(Protocol):
    """What weights are written to, by the names of blocks: a disentangled transformer, say."""

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]: ...

    def readout_block(self, name: str) -> Float[Tensor, "state block"]: ...


def mask_levels(circuit: Circuit) -> tuple[float, float]:
    return (0.0, -2 * circuit.lam) if circuit.sink else (circuit.lam, -circuit.lam)


def set_first_layer(model: Blocks, task: Task, circuit: Circuit) -> None:
    r"""Position i attends to its possible parents i - k in proportion to $P_{s_{i-k},s_i}^\gamma$ ("First layer").

    The token block scores the pair (i, j) with $\gamma \log P_{s_j,s_i}$: row s_i, column s_j of $\gamma \log
    P^\top$. The position block allows $i - j \in \mathcal K$ and nothing else. Softmax of log p is p over the sum of
    p, so the attention of i to i - k is $\tilde p_{i,k}$. A one-hot position is copied with the weight of its token:
    what the head writes of the position block *is* the attention, so $\tilde p_{i,k}$ is stored at index i - k of
    block 1.1/position.
    """
    allow, forbid = mask_levels(circuit)
    gap = _gaps(circuit.length)
    parents = _any_equal(gap, list(circuit.lags))
    for head, sign in (("1.1", 1.0), ("1.2", -1.0)) if circuit.symmetric else (("1.1", 1.0),):
        log_P = sign * circuit.temper * log_probabilities(task, circuit)
        if circuit.log_zero == ZERO:  # 0 to any power is 0
            log_P = torch.where(task.P > 0, log_P, ZERO)
        model.block(head, "token", "token").copy_(log_P.T)
        model.block(head, "position", "position").copy_(_choose(parents, allow, forbid))


def set_second_layer(model: Blocks, circuit: Circuit) -> None:
    r"""Head h gathers from the positions i - o with $c(o) = h$ that a transition has made (paper, "Second layer").

    Position n carries $\tilde p_{n,k}$ at index n - k, so what head h gathers of 1.1/position has $\tilde p_{i-o,k}$ at
    index i - o - k. Two of them share an index only if o + k = o' + k', that is if two offsets of the head differ by a
    difference of two lags, which the colouring c rules out: nothing mixes.

    Without a sink the n_h(i) allowed keys have the weight 1/n_h(i) each; a row with none of them is uniform over the
    past, which spoils the first rows. With a sink, position 0 is allowed too, with $C - n_h(i)$ times the weight of a
    key, so that the total is C and every key has weight 1/C exactly, also where there are many, few or none. C is the
    number of transitions head h will ever see (evidence "sum") or that all heads see from here (evidence "mean").
    """
    allow, forbid = mask_levels(circuit)
    gap = _gaps(circuit.length)
    made = torch.arange(circuit.length)[None, :] >= circuit.max_lag
    colour = _colours(gap, circuit)
    for head in range(circuit.heads):
        scores = _choose(made & (gap >= 0) & (colour == head), allow, forbid)
        if circuit.sink:
            capacity = _capacity(circuit)[:, head]
            missing = torch.where(capacity > 0, capacity - circuit.counts()[:, head], 1)
            scores[:, 0] = torch.where(missing > 0, allow + missing.clamp_min(1).to(torch.float64).log(), forbid)
        model.block(f"2.{head + 1}", "position", "position").copy_(scores)


def set_third_layer(model: Blocks, task: Task, circuit: Circuit) -> None:
    r"""Position i attends to the tokens i - k + 1 that each lag would copy, by the evidence for k ("Third layer").

    The position block allows $i - j + 1 \in \mathcal K$; the blocks B add the evidence to the allowed pairs.
    """
    allow, forbid = mask_levels(circuit)
    gap = _gaps(circuit.length)
    scores = _choose(_any_equal(gap + 1, list(circuit.lags)), allow, forbid)
    if circuit.prior:
        for lag, probability in zip(circuit.lags, task.lag_prior.tolist(), strict=True):
            scores[gap + 1 == lag] += math.log(probability)
    if circuit.third == "position":
        _read_by_position(model, circuit, scores)
    elif circuit.third == "mask":
        _read_by_mask(model, circuit)
    else:
        _read_from_key(model, circuit)
    model.block("3.1", "position", "position").copy_(scores)


def set_readout(model: Blocks, task: Task, circuit: Circuit, readout: str = "probability") -> None:
    r"""$P^\top$ on the copied token: $\sum_k w_k e_{s_{i-k+1}}$ becomes $\sum_k w_k P_{s_{i-k+1},\cdot}$.

    As logits it is $\log P^\top$ (the paper's footnote): then softmax gives a row of P where one token is copied whole.
    """
    P = task.P if readout == "probability" else log_probabilities(task, circuit)
    model.readout_block("3.1/token").copy_(P.T)


def _read_by_position(model: Blocks, circuit: Circuit, scores: Float[Tensor, "query key"]) -> None:
    r"""$B^{(3,h)}_{m,j} = b_h\,[c(j - 1 - m) = h]$ between what head h gathered, at the query, and the key's position.

    At the allowed key j = i - k + 1 the index m = i - k - o is counted for just the offsets $o \in C_h$, o >= 0, and
    it holds $\tilde p_{i-o,k}$ and nothing else: any other $\tilde p_{i-o',k'}$ there would have o' + k' = o + k. So
    the score is $b_h \sum_{o \in C_h} \tilde p_{i-o,k}$ times the weight of a key. (Where each head takes one
    residue, B may repeat itself above m = j - 1 as the paper prints it: those indices hold nothing of the residue.)

    A sink leaves its own position at index 0, with the weight the sink has: a number that depends on i and h alone.
    Index 0 counts at key j for the head c(j - 1), so that number is taken off again in the position block. (With two
    first-layer heads of opposite sign it cancels by itself.)
    """
    index, key = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    colour = _colours(key - 1 - index, circuit)
    if circuit.sink or not one_residue_a_head(circuit.colours):
        colour = torch.where(index <= key - 1, colour, -1)
    capacity, counts = _capacity(circuit).to(torch.float64), circuit.counts()
    for head, b in enumerate(_head_strengths(circuit)):
        B = _choose(colour == head, b, 0.0)
        if circuit.symmetric:
            model.block("3.1", f"2.{head + 1}/1.1/position", "position").copy_(B / 2)
            model.block("3.1", f"2.{head + 1}/1.2/position", "position").copy_(-B / 2)
            continue
        model.block("3.1", f"2.{head + 1}/1.1/position", "position").copy_(B)
        if circuit.sink:
            at_sink = torch.where(capacity > 0, 1 - counts / capacity.clamp_min(1), 1.0)[:, head]  # a row each
            scores -= b * at_sink[:, None] * (colour[0] == head)


def _read_by_mask(model: Blocks, circuit: Circuit) -> None:
    r"""$B^{(3)}_{m,m'} = b\,[(m - m') \bmod R = R - 1]$ between what head h gathered and its attention at the key.

    R is the period. Head h takes one residue, so at the key j its attention lies on positions m' of one residue
    modulo R, that of j - r_h, and sums to 1: B turns it into the indicator of the indices m of residue j - 1 - r_h.
    At j = i - k + 1 these are the m = i - k - o with $o \in C_h$: the same sum as in the positional form.
    """
    index, place = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    period = len(circuit.colours)
    for head, b in enumerate(_head_strengths(circuit)):
        B = _choose((index - place) % period == period - 1, b, 0.0)
        model.block("3.1", f"2.{head + 1}/1.1/position", f"2.{head + 1}/position").copy_(B)


def _read_from_key(model: Blocks, circuit: Circuit) -> None:
    r"""Two lags, one head: $B_{i,m} = \pm\beta$, plus if $(i - m + 1 - 2 \bar k) \bmod 2d < d = \hat k - \bar k$.

    It meets what the head gathered at the *key* j = i - k + 1: $\tilde p_{j-o,k'}$ at index m = j - o - k', where $i
    - m + 1 - 2\bar k = o + (k - \bar k) + (k' - \bar k)$. The head takes $o \bmod 2d < d$; each of the brackets is 0
    or d. So k' = k counts plus, the other lag minus. The two keys are d apart and see complementary offsets:
    together, every transition but the newest $\bar k - 1$.
    """
    query, index = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    d = circuit.lags[1] - circuit.lags[0]
    plus = (query - index + 1 - 2 * circuit.lags[0]) % (2 * d) < d
    B = _choose(plus, circuit.beta, -circuit.beta) * (index < query)
    model.block("3.1", "position", "2.1/1.1/position").copy_(B)


def _head_strengths(circuit: Circuit) -> list[float]:
    """The factor of each head's B that makes its sum count as the circuit says, whatever weight a key has in it."""
    if circuit.evidence == "sum":
        return [circuit.beta * int(c) for c in _capacity(circuit)[-1]]
    shares = [1.0] * circuit.heads if circuit.sink else circuit.shares()
    return [circuit.beta * share for share in shares]


def key_weights(circuit: Circuit) -> Float[Tensor, "head query key"]:
    """The second layer's attention as it is meant: a head's keys alike, the rest on the sink (0 if neither)."""
    gap = _gaps(circuit.length)
    colour = torch.where((gap >= 0) & (torch.arange(circuit.length) >= circuit.max_lag), _colours(gap, circuit), -1)
    keys = torch.stack([(colour == head).to(torch.float64) for head in range(circuit.heads)])
    counts = circuit.counts().T[:, :, None]
    if not circuit.sink:
        return keys / counts.clamp_min(1)
    capacity = _capacity(circuit).T[:, :, None]
    weights = keys / capacity.clamp_min(1)
    weights[:, :, 0] = 1 - weights.sum(dim=-1)
    return weights


def _capacity(circuit: Circuit) -> Int[Tensor, "time head"]:
    """C: a head that sees n transitions gives its sink C - n times a transition's weight."""
    counts = circuit.counts()
    if circuit.evidence == "sum":
        return counts[-1].clamp_min(1).expand_as(counts)
    return counts.sum(dim=-1, keepdim=True).expand_as(counts)


def _gaps(length: int) -> Int[Tensor, "query key"]:
    """Query minus key."""
    return torch.arange(length)[:, None] - torch.arange(length)[None, :]


def _choose(where: Bool[Tensor, "row column"], yes: float, no: float) -> Float[Tensor, "row column"]:
    """In float64: torch.where makes float32 of two plain numbers."""
    return torch.full(where.shape, no, dtype=torch.float64).masked_fill(where, yes)


def _any_equal(values: Int[Tensor, "query key"], wanted: list[int]) -> Bool[Tensor, "query key"]:
    return torch.isin(values, torch.tensor(wanted))


def _colours(offsets: Int[Tensor, "row column"], circuit: Circuit) -> Int[Tensor, "row column"]:
    """The head of each offset, continued periodically to negative ones."""
    return torch.tensor(circuit.colours)[offsets % len(circuit.colours)]
