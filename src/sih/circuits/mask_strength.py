"""The mask strength at which leaks through masks no longer matter."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from sih.base.errors import FieldError
from sih.circuits.any_circuit import AnyCircuit, CircuitT
from sih.circuits.circuit import Circuit
from sih.circuits.log_matrix import ZERO, log_matrix
from sih.circuits.rounding import weight_error
from sih.task import MatrixTask, Task

LagCircuitT = TypeVar("LagCircuitT", bound=Circuit)

DEFAULT = 500.0
"""The paper's strength."""
LEAK = 1e-6
"""The most attention that may leak through a mask, in the worst case."""


def with_masks(circuit: LagCircuitT, task: Task, lam: float | None) -> LagCircuitT:
    """Return a circuit for lags with masks; raise an error if the task is too short."""
    first = circuit.first_exact_position
    if first >= circuit.length:
        raise FieldError(
            "length",
            f"length {circuit.length} is too short: for the lags {circuit.lags} this circuit "
            f"is right from position {first} on; use a longer task, or evidence='sum', "
            f"right from {circuit.max_lag - 1}",
        )
    return masked(circuit, task, lam)


def masked(circuit: CircuitT, task: MatrixTask, lam: float | None) -> CircuitT:
    """Return the circuit with masks of strength `lam`; None chooses a sufficient
    strength.
    """
    needed = least_strength(circuit, task)
    if lam is None:
        return replace(circuit, lam=max(DEFAULT, needed))
    if lam < needed:
        raise FieldError(
            "lam",
            f"lam={lam:g} is too small: in the worst case more than {LEAK:g} of the attention "
            "would leave the allowed positions, for P's smallest entry, the length and beta; "
            f"use lam >= {math.ceil(needed)}",
        )
    return replace(circuit, lam=lam)


def least_strength(circuit: AnyCircuit, task: MatrixTask) -> float:
    """Return the least strength with leaks of at most `LEAK`."""
    return (max(log_leaks(circuit, task)) - math.log(LEAK)) / 2


def log_leaks(circuit: AnyCircuit, task: MatrixTask) -> tuple[float, float]:
    r"""Return the logarithm of the leak through masks of strength 0, in the first and
    last layer.

    A mask multiplies the weight of a forbidden key by $e^{-2\lambda}$; the other terms
    of the scores may favour it.

    *Layer 1.* Together the allowed keys have at least $p_{\min}^\gamma$, since one of
    them is possible. Each other key has at most 1.

    *Layer 2.* All terms are masks, and a sink only adds weight to allowed keys.

    *The last layer.* Scores of two keys differ by at most `circuit.strength()`. If the
    scores contain the log prior, some hypothesis has at least 1/K.
    """
    hypotheses = math.log(len(task.hypotheses)) if circuit.with_prior else 0.0
    others = math.log(circuit.length) + hypotheses
    return others + first_layer_gap(circuit, task), others + circuit.strength()


def first_layer_gap(circuit: AnyCircuit, task: MatrixTask) -> float:
    """Return the largest difference that layer 1's tokens make between two keys'
    scores.
    """
    logs = log_matrix(task.P, circuit.temper, circuit.log_zero)
    if circuit.symmetric:
        return (logs.max() - logs.min()).item()
    possible = logs[task.P > 0] if circuit.log_zero == ZERO else logs
    return -possible.min().item()


def leaks(circuit: AnyCircuit, task: MatrixTask) -> tuple[float, float]:
    """Return the largest change of a weight by leaks: before the last layer, and
    anywhere.

    Leaks in the first two layers move the last layer's scores by at most that share of
    the evidence, at either of two keys. Leaks in the last layer are counted unless a
    certificate makes its masks far stronger than any evidence.
    """
    first, last = (
        math.exp(min(log_leak - 2 * circuit.lam, 0.0)) for log_leak in log_leaks(circuit, task)
    )
    own = 0.0 if circuit.with_prior else last
    return first, first + circuit.times * (own + weight_error(4 * first * circuit.strength()))
