"""A circuit's certificate: `sih.verify` on its weights, at the length shown or the
longest that is quick.
"""

from functools import lru_cache
from typing import Any

import torch

from sih.base.errors import FieldError
from sih.circuits import Circuit, construct, verify
from sih.explorer.circuit_choice import resolve
from sih.explorer.state import State
from sih.task import Task

QUICK = 1_300_000
"""Weights of a third layer that can be checked in about a second: three lags, five
states, length 128."""
HUGE = 1e300
"""Replacement for infinity, which JSON lacks."""


def verdict(state: State, index: int) -> dict[str, Any]:
    """Return the result of `sih.verify` on the circuit of model `index`, with the
    length at which it was checked.
    """
    choice, task = state.choice(index), state.task()
    if choice.trained:
        raise FieldError(
            f"models.{index}", "a trained model has no certificate: it follows no closed form"
        )
    circuit = resolve(f"models.{index}", choice, task)
    options = tuple(sorted(choice.options().items()))
    rows = tuple(map(tuple, task.P.tolist()))
    return _verified(rows, task.lags, checked_length(circuit, task), options)


def checked_length(circuit: Circuit, task: Task) -> int:
    """Return the length shown, or the longest with at most `QUICK` weights in the third
    layer.

    It always exceeds the first positions, where the closed form does not hold. A circuit
    with relative positions is checked at the length shown.
    """
    if circuit.length is None:  # its weights do not grow with the length
        return task.length
    routes = (1 + circuit.model_heads[0]) * (1 + circuit.heads)
    longest = int(QUICK**0.5 / routes) - task.num_states
    return min(task.length, max(longest, circuit.first_exact_position + 8))


@lru_cache(maxsize=256)
def _verified(
    rows: tuple[tuple[float, ...], ...],
    lags: tuple[int, ...],
    length: int,
    options: tuple[tuple[str, Any], ...],
) -> dict[str, Any]:
    task = Task(torch.tensor(rows, dtype=torch.float64), lags, length)
    found = verify(construct(task, **dict(options)), task, size=4)
    said = {
        name: getattr(found, name) for name in ("ok", "tolerance", "bound", "first_exact_position")
    }
    errors = {name: getattr(found, name) for name in ("max_error", "posterior_error")}
    said |= {name: None if error is None else min(error, HUGE) for name, error in errors.items()}
    return {**said, "sequences": sum(found.sequences.values()), "length": length}
