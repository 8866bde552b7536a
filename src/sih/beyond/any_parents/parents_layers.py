r"""`write_parents(blocks, task, circuit)`: the layers of a circuit for any parents,
with a proof of their function.

A mask adds 0 to the score of a wanted pair of positions and -2 lam to that of an
unwanted one. $L_n(m)$ are the hypotheses under which m is the parent of token n, as in
`beyond/any_parents/token_heads.py`.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.beyond.any_parents.parents_circuit import ParentsCircuit
from sih.circuits.any_circuit import Blocks
from sih.circuits.log_matrix import log_matrix
from sih.task import ParentsTask


def write_parents(blocks: Blocks, task: ParentsTask, circuit: ParentsCircuit, readout: str) -> None:
    """Write the circuit into blocks of zeros."""
    table, forbid = circuit.table, circuit.masks.forbid
    # Layer 1. Token n attends only to its parents, to m with log |L_n(m)| + temper * log P: softmax gives the sum over
    # L_n(m) of the shares p-tilde, which are equal, and 1.1/position holds |L_n(m)| * p-tilde at index m.
    first = torch.full((circuit.length, circuit.length), forbid, dtype=torch.float64)
    _put(
        first,
        torch.arange(circuit.length)[:, None],
        table[:, :-1].T,
        _same(table[:, :-1].T).sum(dim=2).log(),
    )
    for name, power in circuit.exponents.items():
        blocks.block(name, "token", "token").copy_(log_matrix(task.P, power, circuit.log_zero).T)
        blocks.block(name, "position", "position").copy_(first)
    # Layer 2. A head gathers its tokens with weight 1/C each. Position 0 has no parent, so it
    # belongs to no head; it takes the rest (C - n)/C, so the weights of every row sum to 1.
    # Position 0 stores e_0, since it attends only to itself.
    taken = circuit.takes.sum(dim=2)
    for head in range(circuit.heads):
        scores = torch.full_like(first, forbid).masked_fill(circuit.takes[head], 0.0)
        rest = circuit.totals[head] - taken[head]
        scores[:, 0] = torch.where(rest > 0, rest.clamp_min(1).log(), forbid)
        blocks.block(f"2.{head + 1}", "position", "position").copy_(scores)
    # Layer 3. Row i reads the key of h with beta * E_{i,h}, as `_reads` proves, and the logarithm of its prior, or of
    # the number of hypotheses with this key: those have had the same parents so far, so they have the same E.
    for a, (times, keys) in enumerate(circuit.copying, 1):
        at = torch.where(circuit.rows[:, None], keys, -1)
        scores = torch.full_like(first, forbid)
        chance = (
            task.prior
            if circuit.with_prior
            else torch.ones(circuit.hypotheses, dtype=torch.float64)
        )
        _put(scores, torch.arange(circuit.length)[:, None], at, (_same(keys) @ chance).log())
        for head, read in enumerate(_reads(circuit, at)):
            B = (
                circuit.beta
                * read
                * (circuit.totals[head, -1] if circuit.counting == "sum" else 1.0)
            )
            if (
                circuit.symmetric
            ):  # half the difference of two shares; the contribution of position 0 cancels
                blocks.block(f"3.{a}", f"2.{head + 1}/1.1/position", "position").copy_(B / 2)
                blocks.block(f"3.{a}", f"2.{head + 1}/1.2/position", "position").copy_(-B / 2)
            else:  # position 0 left (C - n)/C at index 0, a number that depends on the row alone: it is subtracted
                blocks.block(f"3.{a}", f"2.{head + 1}/1.1/position", "position").copy_(B)
                scores -= (1 - taken[head] / circuit.totals[head])[:, None] * B[0]
        blocks.block(f"3.{a}", "position", "position").copy_(scores)
        # The output sums `times` the token that each head copied, through P^T: the sum of
        # `parents_circuit`'s docstring.
        P = task.P if readout == "probability" else log_matrix(task.P, log_zero=circuit.log_zero)
        blocks.readout_block(f"3.{a}/token").copy_(times * P.T)


def _reads(
    circuit: ParentsCircuit, keys: Int[Tensor, "row hypothesis"]
) -> Float[Tensor, "head index key"]:
    r"""Return $[h \in L_n(m)] / |L_n(m)|$ for index m and the key of h, where a head
    gathers n at a row with that key.

    At index m a head holds $\sum_n |L_n(m)| \tilde p_{n,g} / C$ over the tokens n that
    it takes, g any of $L_n(m)$. Tokens share the head only if they need the same number
    here, so the key of h reads $\tilde p_{n,h} / C$ once of each token: at m = parent
    of n under h, the only index with $h \in L_n(m)$. Times $\beta C$ and over all heads
    that is $\beta E_{i,h}$. (For the mean C is the number of tokens seen, and $\beta$
    alone is put here.)
    """
    out = torch.zeros((circuit.heads, circuit.length, circuit.length), dtype=torch.float64)
    table = circuit.table[:, :-1].T  # token hypothesis
    label = _same(table) / _same(table).sum(
        dim=2, keepdim=True
    )  # token, hypothesis of the index, of the key
    for i in circuit.rows.nonzero().flatten().tolist():
        heads, tokens = circuit.takes[:, i].nonzero(as_tuple=True)
        out[heads[:, None, None], table[tokens][:, :, None], keys[i]] = label[tokens]
    return out


def _same(keys: Int[Tensor, "row hypothesis"]) -> Float[Tensor, "row hypothesis hypothesis"]:
    """Return 1 for hypotheses with the same key, otherwise 0."""
    return (keys[:, :, None] == keys[:, None, :]).double()


def _put(
    scores: Float[Tensor, "row key"],
    rows: Int[Tensor, "row 1"],
    keys: Int[Tensor, "row hypothesis"],
    values: Float[Tensor, "row hypothesis"],
) -> None:
    """Write values at keys, if there is one."""
    there = keys >= 0
    scores[rows.expand_as(keys)[there], keys[there]] = values[there]
