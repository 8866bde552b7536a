r"""`write(blocks, task, circuit)`: the three layers' weights, block by block, each with the proof of what it computes.

Positions count from 0: a transition of lag k into token n comes from token n - k, and the tokens from max_lag on were
made by a transition. A mask adds `allow` to the score of a wanted pair of positions and `forbid` to that of an
unwanted one. In the paper they are +lam and -lam; softmax sees only the difference, and 0 and -2 lam leave the other
terms their digits.
"""

import math
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.construction.circuit import Circuit, log_probabilities, one_residue_each
from sih.construction.parents_circuit import ParentsCircuit
from sih.construction.profiles import Profile
from sih.task import ParentsTask, Task

STRONG = 1e4
"""Masks of the paper's form are +lam and -lam up to this strength; beyond, log p would lose its digits beside lam."""


@runtime_checkable
class Blocks(Protocol):
    """Holds weights that are written by the names of blocks: a disentangled transformer, say."""

    def block(self, head: str, query: str, key: str) -> Float[Tensor, "query_block key_block"]: ...

    def readout_block(self, name: str) -> Float[Tensor, "state block"]: ...


BlocksT = TypeVar("BlocksT", bound=Blocks)


def write(
    blocks: BlocksT,
    task: Task | ParentsTask,
    circuit: Circuit | ParentsCircuit,
    readout: str = "probability",
) -> BlocksT:
    """Write the circuit for this task into blocks that are zero, and return them."""
    if isinstance(circuit, ParentsCircuit) or isinstance(task, ParentsTask):
        from sih.construction.parents_layers import (
            write_parents,
        )  # which is written in terms of this module

        assert isinstance(task, ParentsTask)
        assert isinstance(circuit, ParentsCircuit)
        write_parents(blocks, task, circuit, readout)
        return blocks
    if circuit.looking:
        from sih.construction.looking import (
            write_looking,
        )  # which is written in terms of this module

        write_looking(blocks, task, circuit, readout)
        return blocks
    write_first_layer(blocks, task, circuit)
    write_second_layer(blocks, circuit)
    write_third_layer(blocks, task, circuit)
    write_readout(blocks, task, circuit, readout)
    return blocks


def mask_levels(circuit: Circuit | ParentsCircuit) -> tuple[float, float]:
    """Return what a mask adds to a wanted and to an unwanted pair's score."""
    return (
        (0.0, -2 * circuit.lam)
        if circuit.sink or circuit.lam > STRONG
        else (circuit.lam, -circuit.lam)
    )


def write_first_layer(blocks: Blocks, task: Task, circuit: Circuit) -> None:
    r"""Make position i attend to its possible parents i - k, in proportion to $P_{s_{i-k},s_i}^\gamma$ ("First layer").

    The token block scores the pair (i, j) with $\gamma \log P_{s_j,s_i}$: row s_i, column s_j of $\gamma \log
    P^\top$. The position block allows $i - j \in \mathcal K$ and nothing else. Softmax of log p is p over the sum of
    p, so the attention of i to i - k is $\tilde p_{i,k}$. A one-hot position is copied with the weight of its token:
    what the head writes of the position block *is* the attention, so $\tilde p_{i,k}$ is stored at index i - k of
    block 1.1/position.
    """
    allow, forbid = mask_levels(circuit)
    gap = _gaps(circuit.length)
    parents = _is_lag(gap, circuit)
    for head, power in circuit.exponents.items():
        blocks.block(head, "token", "token").copy_(log_probabilities(task, circuit, power).T)
        blocks.block(head, "position", "position").copy_(_choose(parents, allow, forbid))


def write_second_layer(blocks: Blocks, circuit: Circuit) -> None:
    r"""Make head h gather from the positions i - o with $c(o) = h$ that a transition has made ("Second layer").

    c(o) is the head of offset o, `circuit.head_of_offset`.

    Position n carries $\tilde p_{n,k}$ at index n - k, so what head h gathers of 1.1/position has $\tilde p_{i-o,k}$ at
    index i - o - k. Two of them share an index only if o + k = o' + k', that is if two offsets of the head differ by a
    difference of two lags, which c rules out: nothing mixes.

    Without a sink the n_h(i) allowed keys have the weight 1/n_h(i) each; a row with none of them is uniform over the
    past, which spoils the first rows. With a sink, position 0 is allowed too, with $C - n_h(i)$ times the weight of a
    key, so that the total is C and every key has weight 1/C exactly, also where there are many, few or none. C is the
    number of transitions head h will ever see (evidence "sum") or that all heads see from here (evidence "mean").

    With a profile every head takes every offset, o with weight $u_h(o) / C_h$ in any row, and the sink has what is
    left: the scores are the logarithms of these.
    """
    allow, forbid = mask_levels(circuit)
    if circuit.profile is not None:
        for head, weights in enumerate(key_weights(circuit)):
            scores = torch.where(weights > 0, weights.clamp_min(1e-300).log(), forbid)
            blocks.block(f"2.{head + 1}", "position", "position").copy_(scores)
        return
    for head, keys in enumerate(_keys(circuit)):
        scores = _choose(keys, allow, forbid)
        if circuit.sink:
            sink_total = _sink_total(circuit)[:, head]
            missing = torch.where(sink_total > 0, sink_total - circuit.counts()[:, head], 1)
            scores[:, 0] = torch.where(
                missing > 0, allow + missing.clamp_min(1).to(torch.float64).log(), forbid
            )
        blocks.block(f"2.{head + 1}", "position", "position").copy_(scores)


def write_third_layer(blocks: Blocks, task: Task, circuit: Circuit) -> None:
    r"""Make position i attend to the tokens i - k + 1 that each lag would copy, by the evidence for k ("Third layer").

    The position block allows $i - j + 1 \in \mathcal K$; the blocks B add the evidence to the allowed pairs.
    """
    allow, forbid = mask_levels(circuit)
    gap = _gaps(circuit.length)
    scores = _choose(_is_lag(gap + 1, circuit), allow, forbid)
    if circuit.prior:
        for lag, probability in zip(circuit.lags, task.lag_prior.tolist(), strict=True):
            scores[gap + 1 == lag] += math.log(probability)
    if circuit.profile is not None:
        _read_mixed(blocks, circuit, circuit.profile, scores)
    elif circuit.third == "position":
        _read_by_position(blocks, circuit, scores)
    elif circuit.third == "mask":
        _read_by_mask(blocks, circuit)
    else:
        _read_from_key(blocks, circuit)
    blocks.block("3.1", "position", "position").copy_(scores)


def write_readout(
    blocks: Blocks, task: Task, circuit: Circuit, readout: str = "probability"
) -> None:
    r"""Put $P^\top$ on the copied token, so that $\sum_k w_k e_{s_{i-k+1}}$ becomes $\sum_k w_k P_{s_{i-k+1},\cdot}$.

    As logits it is $\log P^\top$ (the paper's footnote): then softmax gives a row of P where one token is copied whole.
    """
    P = task.P if readout == "probability" else log_probabilities(task, circuit)
    blocks.readout_block("3.1/token").copy_(P.T)


def _read_by_position(blocks: Blocks, circuit: Circuit, scores: Float[Tensor, "query key"]) -> None:
    r"""Put $B^{(3,h)}_{m,j} = b_h\,[c(j - 1 - m) = h]$ between what head h gathered, at the query, and the key's place.

    At the allowed key j = i - k + 1 the index m = i - k - o is counted for just the offsets $o \in C_h$, o >= 0, and
    it holds $\tilde p_{i-o,k}$ and nothing else: any other $\tilde p_{i-o',k'}$ there would have o' + k' = o + k. So
    the score is $b_h \sum_{o \in C_h} \tilde p_{i-o,k}$ times the weight of a key. (Where each head takes one
    residue, B may repeat itself above m = j - 1 as the paper prints it: those indices hold nothing of the residue.)

    A sink leaves its own position at index 0, with the weight the sink has: a number that depends on i and h alone.
    Index 0 counts at key j for the head c(j - 1), so that number is taken off again in the position block. (With two
    first-layer heads of opposite sign it cancels by itself.)
    """
    index, key = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    head_at = circuit.heads_at(key - 1 - index)
    if circuit.sink or not one_residue_each(circuit.head_of_offset):
        head_at = torch.where(index <= key - 1, head_at, -1)
    sink_total, counts = _sink_total(circuit).to(torch.float64), circuit.counts()
    for head, b in enumerate(_head_strengths(circuit)):
        B = _choose(head_at == head, b, 0.0)
        if circuit.symmetric:
            blocks.block("3.1", f"2.{head + 1}/1.1/position", "position").copy_(B / 2)
            blocks.block("3.1", f"2.{head + 1}/1.2/position", "position").copy_(-B / 2)
            continue
        blocks.block("3.1", f"2.{head + 1}/1.1/position", "position").copy_(B)
        if circuit.sink:
            at_sink = torch.where(sink_total > 0, 1 - counts / sink_total.clamp_min(1), 1.0)[
                :, head
            ]  # a row each
            scores -= b * at_sink[:, None] * (head_at[0] == head)


def _read_mixed(
    blocks: Blocks, circuit: Circuit, profile: Profile, scores: Float[Tensor, "query key"]
) -> None:
    r"""Put $B_h = \beta C_h\,g_h(j - m - 1)$ between what head h gathered at the query and the key's place.

    And $\beta C_h\,\bar g_h(i - m)$ between the query's place and what head h gathered at the key, if that is read.

    The first layer stores $\tilde p = 1/K + (\gamma/K)\,q$ with $\sum_k q_k = 0$ exactly, so the score of lag k is
    $\sum_o F_o q_{i-o}$ (`sih.construction.profiles`), with $\beta = K / \gamma$, and what the 1/K and the sink add:
    $(A_h b) B_h$, A_h the intended attention and b that of the first layer with 1/K for every $\tilde p$. It depends on
    i and j alone, and the position block takes it off at every pair, masked ones too. (With two first-layer heads of
    opposite sign it cancels by itself.)
    """
    neutral = torch.zeros_like(scores)
    neutral[0, 0] = 1.0
    made = torch.arange(circuit.max_lag, circuit.length)
    for lag in circuit.lags:
        neutral[made, made - lag] = 1 / len(circuit.lags)
    for head, weights in enumerate(key_weights(circuit)):
        strength = circuit.beta * profile.totals[head].item()
        at_query, at_key = (
            strength * profile.query_blocks[head],
            strength * profile.key_blocks[head],
        )
        signs = {"1.1": 0.5, "1.2": -0.5} if circuit.symmetric else {"1.1": 1.0}
        for source, sign in signs.items():
            held = f"2.{head + 1}/{source}/position"
            blocks.block("3.1", held, "position").copy_(sign * at_query)
            if profile.key is not None:
                blocks.block("3.1", "position", held).copy_(sign * at_key)
        if not circuit.symmetric:
            scores -= weights @ neutral @ at_query + at_key @ (weights @ neutral).T


def _read_by_mask(blocks: Blocks, circuit: Circuit) -> None:
    r"""Put $B^{(3)}_{m,m'} = b\,[(m - m') \bmod R = R - 1]$ between what head h gathered and its attention at the key.

    R is the period. Head h takes one residue, so at the key j its attention lies on positions m' of one residue
    modulo R, that of j - r_h, and sums to 1: B turns it into the indicator of the indices m of residue j - 1 - r_h.
    At j = i - k + 1 these are the m = i - k - o with $o \in C_h$: the same sum as in the positional form.
    """
    index, place = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    period = len(circuit.head_of_offset)
    for head, b in enumerate(_head_strengths(circuit)):
        B = _choose((index - place) % period == period - 1, b, 0.0)
        blocks.block("3.1", f"2.{head + 1}/1.1/position", f"2.{head + 1}/position").copy_(B)


def _read_from_key(blocks: Blocks, circuit: Circuit) -> None:
    r"""Put $B_{i,m} = \pm\beta$ between the query's position and what the one head of two lags gathered at the key.

    It is plus if $(i - m + 1 - 2 \bar k) \bmod 2d < d = \hat k - \bar k$.

    It meets what the head gathered at the *key* j = i - k + 1: $\tilde p_{j-o,k'}$ at index m = j - o - k', where $i
    - m + 1 - 2\bar k = o + (k - \bar k) + (k' - \bar k)$. The head takes $o \bmod 2d < d$; each of the brackets is 0
    or d. So k' = k counts plus, the other lag minus. The two keys are d apart and see complementary offsets:
    together, every transition but the newest $\bar k - 1$.
    """
    query, index = torch.arange(circuit.length)[:, None], torch.arange(circuit.length)[None, :]
    d = circuit.lags[1] - circuit.lags[0]
    plus = (query - index + 1 - 2 * circuit.lags[0]) % (2 * d) < d
    B = _choose(plus, circuit.beta, -circuit.beta) * (index < query)
    blocks.block("3.1", "position", "2.1/1.1/position").copy_(B)


def _head_strengths(circuit: Circuit) -> list[float]:
    """Return b_h, the factor with which each head's sum counts as the circuit says, whatever weight a key has in it."""
    if circuit.evidence == "sum":
        return [circuit.beta * int(c) for c in _sink_total(circuit)[-1]]
    shares = [1.0] * circuit.heads if circuit.sink else circuit.shares()
    return [circuit.beta * share for share in shares]


def key_weights(circuit: Circuit) -> Float[Tensor, "head query key"]:
    """Return the second layer's attention as it is meant: by the profile or all keys alike, the rest on the sink."""
    if circuit.profile is not None:
        gap = _gaps(circuit.length)
        made = (gap >= 0) & (torch.arange(circuit.length) >= circuit.max_lag)
        last = circuit.profile.weights.shape[1] - 1
        weights = torch.where(made, circuit.profile.weights[:, gap.clamp(0, last)], 0.0)
        weights = weights / circuit.profile.totals[:, None, None]
        weights[:, :, 0] = 1 - weights.sum(dim=-1)
        return weights
    keys = _keys(circuit).to(torch.float64)
    counts = circuit.counts().T[:, :, None]
    if not circuit.sink:
        return keys / counts.clamp_min(1)
    sink_total = _sink_total(circuit).T[:, :, None]
    weights = keys / sink_total.clamp_min(1)
    weights[:, :, 0] = 1 - weights.sum(dim=-1)
    return weights


def _keys(circuit: Circuit) -> Bool[Tensor, "head query key"]:
    """Tell which keys each second-layer head takes: those of its offsets that a transition has made."""
    gap = _gaps(circuit.length)
    made = torch.arange(circuit.length) >= circuit.max_lag
    head_at = torch.where((gap >= 0) & made, circuit.heads_at(gap), -1)
    return head_at == torch.arange(circuit.heads)[:, None, None]


def _sink_total(circuit: Circuit) -> Int[Tensor, "time head"]:
    """Return C: a head that sees n transitions gives its sink C - n times a transition's weight."""
    counts = circuit.counts()
    if circuit.evidence == "sum":
        return counts[-1].clamp_min(1).expand_as(counts)
    return counts.sum(dim=-1, keepdim=True).expand_as(counts)


def _gaps(length: int) -> Int[Tensor, "query key"]:
    """Return query minus key."""
    return torch.arange(length)[:, None] - torch.arange(length)[None, :]


def _choose(
    where: Bool[Tensor, "row column"], yes: float, no: float
) -> Float[Tensor, "row column"]:
    """Return one of two numbers at each place, in float64 (torch.where would make it float32)."""
    return torch.full(where.shape, no, dtype=torch.float64).masked_fill(where, yes)


def _is_lag(values: Int[Tensor, "query key"], circuit: Circuit) -> Bool[Tensor, "query key"]:
    return torch.isin(values, torch.tensor(circuit.lags))
