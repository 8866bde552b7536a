r"""The layers that circuits share: their weights, the reasons, and their closed forms.

Positions count from 0. A transition of lag k into token n comes from token n - k;
tokens from max_lag on have a parent. Each function that writes weights is followed by
the function that returns the resulting values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.circuits.any_circuit import Blocks, Expected
from sih.circuits.circuit import Circuit
from sih.circuits.log_matrix import log_matrix
from sih.circuits.positions import at_candidates, at_offsets, choose, gaps, rows_from
from sih.predictors.evidence import mixture, normalised_probabilities
from sih.task import Task

Tokens = Int[Tensor, "batch time"]


def attend_to_parents(blocks: Blocks, task: Task, circuit: Circuit) -> None:
    r"""Write layer 1: position n attends to its possible parents n - k, with weight
    $\tilde p_{n,k}$.

    The token block scores the pair (n, m) with $\gamma \log P_{s_m, s_n}$. The position
    block allows $n - m \in \mathcal K$ and nothing else. Softmax of a logarithm is the
    number over its sum, so

    $$\mathcal A_{n, n-k} = P_{s_{n-k}, s_n}^\gamma \Big/ \sum_l P_{s_{n-l}, s_n}^\gamma
    = \tilde p_{n,k}.$$

    Positions are one-hot and are copied with these weights. So the head's output for
    the position block *is* its attention: $\tilde p_{n,k}$ stands at index n - k.

    Paper: Sec. 5.1, "First layer".
    """
    is_parent = torch.isin(gaps(circuit.length), torch.tensor(circuit.lags))
    for head, power in circuit.exponents.items():
        logs = log_matrix(task.P, power, circuit.log_zero)
        blocks.block(head, "token", "token").copy_(logs.T)
        blocks.block(head, "position", "position").copy_(choose(is_parent, *circuit.masks))


def expect_layers(
    tokens: Tokens,
    task: Task,
    circuit: Circuit,
    attention: Float[Tensor, "head *batch query key"],
    first_rows: Sequence[int],
) -> Iterator[Expected]:
    """Yield the closed form of a circuit of three layers, given the second's attention.

    Args:
        attention: of each second-layer head.
        first_rows: the first row at which each head is right.
    """
    yield from expect_parents(tokens, task, circuit)
    yield from expect_gathered(tokens, task, circuit, attention, first_rows)
    yield from expect_copies(tokens, task, circuit)


def expect_parents(tokens: Tokens, task: Task, circuit: Circuit) -> Iterator[Expected]:
    """Yield the first layer's attention, at the tokens that have a parent."""
    rows = rows_from(circuit.max_lag, tokens)
    for head, power in circuit.exponents.items():
        p = normalised(tokens, task, circuit, power)
        yield Expected(f"{head}/attention", rows, at_offsets(p, circuit.lags))


def normalised(
    tokens: Tokens, task: Task, circuit: Circuit, power: float
) -> Float[Tensor, "batch time lag"]:
    r"""Return $\tilde p$ at every position from max_lag on, and 0 before."""
    logs = log_matrix(task.P, power, circuit.log_zero)
    return normalised_probabilities(tokens, task, log_P=logs)


def evidence(tokens: Tokens, task: Task, circuit: Circuit) -> Float[Tensor, "batch time lag"]:
    r"""Return the evidence of each transition: $\tilde p$, or half the difference of
    two.
    """
    p = normalised(tokens, task, circuit, circuit.temper)
    if not circuit.symmetric:
        return p
    return (p - normalised(tokens, task, circuit, -circuit.temper)) / 2


def expect_gathered(
    tokens: Tokens,
    task: Task,
    circuit: Circuit,
    attention: Float[Tensor, "head *batch query key"],
    first_rows: Sequence[int],
) -> Iterator[Expected]:
    """Yield each second-layer head's attention, and the values it gathers from layer 1.

    A first-layer head stores its attention. Position 0 can attend only to itself.
    """
    stored = {}
    for source, power in circuit.exponents.items():
        stored[source] = at_offsets(normalised(tokens, task, circuit, power), circuit.lags)
        stored[source][:, 0, 0] = 1.0
    for head, (weights, first) in enumerate(zip(attention, first_rows, strict=True), start=1):
        rows = rows_from(first, tokens)
        gathering = weights.expand(len(tokens), -1, -1)
        yield Expected(f"2.{head}/attention", rows, gathering)
        for source, holds in stored.items():
            yield Expected(f"2.{head}/{source}/position", rows, gathering @ holds)


def candidate_scores(circuit: Circuit) -> Float[Tensor, "query key"]:
    r"""Return the last layer's position block, which allows the candidates of all lags.

    Lag k copies token $i - k + 1$ to follow token i, so the block allows
    $i - j + 1 \in \mathcal K$. The reads of layer 2 decide between them.

    Paper: Sec. 5.1, "Third layer".
    """
    is_candidate = torch.isin(gaps(circuit.length) + 1, torch.tensor(circuit.lags))
    return choose(is_candidate, *circuit.masks)


def log_prior(task: Task) -> Float[Tensor, "query key"]:
    """Return each lag's log prior at its candidate, and 0 elsewhere."""
    gap = gaps(task.length)
    scores = torch.zeros(gap.shape, dtype=torch.float64)
    for lag, probability in zip(task.lags, task.lag_prior.tolist(), strict=True):
        scores[gap + 1 == lag] = math.log(probability)
    return scores


def read_at_query(
    blocks: Blocks, circuit: Circuit, head: str, B: Float[Tensor, "index key"]
) -> None:
    """Write B between the values of a head at the query, and the key's position."""
    for source, share in circuit.shares.items():
        blocks.block("3.1", f"{head}/{source}/position", "position").copy_(share * B)


def copy_law(blocks: Blocks, task: Task, circuit: Circuit, readout: str, head: str = "3.1") -> None:
    r"""Write the readout: the copied token becomes the distribution of its successor.

    $P^\top$ makes $\sum_k w_k e_{s_{i-k+1}}$ into $\sum_k w_k P_{s_{i-k+1}, \cdot}$. As
    logits it is $\log P^\top$ (the paper's footnote): then softmax gives a row of P if
    all attention is on one token.
    """
    rows = task.P if readout == "probability" else log_matrix(task.P, log_zero=circuit.log_zero)
    blocks.readout_block(f"{head}/token").copy_(rows.T)


def expect_copies(
    tokens: Tokens, task: Task, circuit: Circuit, head: str = "3.1"
) -> Iterator[Expected]:
    """Yield the last layer's attention and the output, by the closed form."""
    rows = rows_from(circuit.first_exact_position, tokens)
    weights = circuit.weights(tokens, task)
    yield Expected(f"{head}/attention", rows, at_candidates(weights, circuit.lags))
    yield Expected("output", rows, mixture(weights, tokens, task))
