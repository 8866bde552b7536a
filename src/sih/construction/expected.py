"""What every layer of a circuit must hold, from the closed form and the circuit's choices: what `verify` compares.

Nothing here reads a weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sih.construction.circuit import Circuit, circuit_weights, normalised
from sih.construction.layers import key_weights
from sih.construction.looking import looked_posterior, looking_attention
from sih.construction.parents_circuit import ParentsCircuit, parents_weights, token_shares
from sih.evidence import lag_posterior, mixture
from sih.task import MatrixTask, ParentsTask, Task, counted


@dataclass(frozen=True, eq=False)
class Expected:
    """Holds what the closed form says of one value of the pass, at the rows for which it is claimed."""

    site: str
    rows: Bool[Tensor, " time"]
    value: Float[Tensor, "batch time _"]


@dataclass(frozen=True, eq=False)
class ClosedForm:
    """Holds what the closed form says of a pass on some tokens."""

    before: tuple[Expected, ...]
    """What the first two layers attend to and hold."""
    last: tuple[Expected, ...]
    """What the heads of the third layer attend to."""
    exact: tuple[Expected, ...]
    """What they would attend to with the exact posterior, if the circuit is to have it."""
    output: Expected


def lag_form(
    tokens: Int[Tensor, "batch time"],
    task: MatrixTask,
    circuit: Circuit,
    stored_at_indices: bool = True,
) -> ClosedForm:
    """Say what a circuit for lags computes; `stored_at_indices` unless positions are few numbers."""
    assert isinstance(task, Task)
    rows, weights = (
        _from(circuit.first_exact_position, tokens),
        circuit_weights(tokens, task, circuit),
    )

    def last(weights: Tensor) -> tuple[Expected, ...]:
        return (
            Expected(
                "3.1/attention", rows, _at_offsets(weights, [lag - 1 for lag in circuit.lags])
            ),
        )

    exact: tuple[Expected, ...] = ()
    if circuit.prior:
        exact = last(
            looked_posterior(tokens, task, circuit)
            if circuit.looking
            else lag_posterior(tokens, task)
        )
    before = tuple(_lags_before_the_last_layer(tokens, task, circuit, stored_at_indices))
    return ClosedForm(
        before, last(weights), exact, Expected("output", rows, mixture(weights, tokens, task))
    )


def parents_form(
    tokens: Int[Tensor, "batch time"], task: MatrixTask, circuit: ParentsCircuit
) -> ClosedForm:
    """Say what a circuit for any parents computes."""
    assert isinstance(task, ParentsTask)
    weights = parents_weights(tokens, task, circuit)

    def last(weights: Tensor) -> tuple[Expected, ...]:
        keys = {f"3.{a}/attention": head.keys for a, head in enumerate(circuit.copying, 1)}
        return tuple(
            Expected(site, circuit.rows, _paid(weights, at, circuit.rows))
            for site, at in keys.items()
        )

    before = tuple(_parents_before_the_last_layer(tokens, task, circuit))
    exact = last(lag_posterior(tokens, task)) if circuit.prior else ()
    return ClosedForm(
        before,
        last(weights),
        exact,
        Expected("output", circuit.rows, mixture(weights, tokens, task)),
    )


def _lags_before_the_last_layer(
    tokens: Int[Tensor, "batch time"], task: Task, circuit: Circuit, stored_at_indices: bool
) -> Iterator[Expected]:
    """Say what the first two layers attend to, and, unless positions are few numbers, what the second gathers.

    The first layer is claimed where transitions are, a head of the second where it has a key.
    """
    stored = {}
    for source, power in circuit.exponents.items():
        stored[source] = _at_offsets(normalised(tokens, task, circuit, power), circuit.lags)
        yield Expected(f"{source}/attention", _from(circuit.max_lag, tokens), stored[source])
    looked = (
        looking_attention(tokens, task, circuit).unbind(1)
        if circuit.looking
        else key_weights(circuit)
    )
    for head, keys in enumerate(looked):
        rows = _from(
            0 if circuit.sink else circuit.max_lag + circuit.head_of_offset.index(head), tokens
        )
        gathered = keys.expand(len(tokens), -1, -1)
        yield Expected(f"2.{head + 1}/attention", rows, gathered)
        for source, holds in stored.items() if stored_at_indices else ():
            holds = holds.clone()
            holds[:, 0, 0] = 1.0  # position 0 can attend only to itself; the sink
            yield Expected(f"2.{head + 1}/{source}/position", rows, gathered @ holds)


def _parents_before_the_last_layer(
    tokens: Int[Tensor, "batch time"], task: ParentsTask, circuit: ParentsCircuit
) -> Iterator[Expected]:
    """Say what the first two layers attend to and what the second gathers, by loops over the circuit's table."""
    parents, time = task.parents(tokens.shape[1]), tokens.shape[1]
    children, stored = counted(parents), {}
    for source, power in circuit.exponents.items():
        stored[source] = _paid(token_shares(tokens, task, circuit, power), parents.T, children)
        yield Expected(f"{source}/attention", children, stored[source].clone())
        stored[source][:, 0, 0] = 1.0  # position 0 can attend only to itself
    for head in range(circuit.heads):
        attention = torch.zeros(time, time, dtype=torch.float64)
        for i in range(time):
            at = circuit.head_of_token[i % len(circuit.head_of_token)]
            attention[i, [n for n in range(i + 1) if at[n] == head]] = 1 / circuit.totals[head, i]
        attention[:, 0] = 1 - attention.sum(dim=1)
        yield Expected(
            f"2.{head + 1}/attention", _from(0, tokens), attention.expand(len(tokens), -1, -1)
        )
        for source, holds in stored.items():
            yield Expected(f"2.{head + 1}/{source}/position", _from(0, tokens), attention @ holds)


def _from(first: int, tokens: Int[Tensor, "batch time"]) -> Bool[Tensor, " time"]:
    """Claim the rows from this position on."""
    return torch.arange(tokens.shape[1]) >= first


def _at_offsets(
    weights: Float[Tensor, "batch time lag"], offsets: Sequence[int]
) -> Float[Tensor, "batch time time"]:
    """Spread weights of offsets over keys: query i pays weights[i, n] to the key i - offsets[n], if there is one."""
    size, time, _ = weights.shape
    out = weights.new_zeros((size, time, time))
    for index, offset in enumerate(offsets):
        queries = torch.arange(offset, time)
        out[:, queries, queries - offset] = weights[:, queries, index]
    return out


def _paid(
    weights: Float[Tensor, "batch time hypothesis"],
    keys: Int[Tensor, "time hypothesis"],
    rows: Bool[Tensor, " time"],
) -> Float[Tensor, "batch time time"]:
    """Pay each hypothesis's weight to its key, at these rows; those with one key add up."""
    out = weights.new_zeros((*weights.shape[:2], weights.shape[1]))
    return out.scatter_add_(2, keys.clamp_min(0).expand_as(weights), weights * rows[:, None])
