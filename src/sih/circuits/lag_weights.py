"""`circuit_weights`: the closed form of a circuit, evaluated on sequences."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from sih.base.errors import check_kind
from sih.base.types import Tokens
from sih.circuits.circuit import Circuit
from sih.predictors.evidence import check_states
from sih.task import Task, check_task


def circuit_weights(
    tokens: Tokens, task: Task, circuit: Circuit
) -> Float[Tensor, "batch time lag"]:
    """Return the last layer's attention to the token that each lag would copy, by the
    closed form.

    The weights hold from position `circuit.first_exact_position` on. This is the fast
    way to use a construction: no transformer is run.

    Args:
        tokens: The sequences, (batch, time).
        task: The task they were drawn from.
        circuit: `model.circuit` of a constructed model.

    Returns:
        Weights of shape (batch, time, lag).

    >>> import sih, torch
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=16)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])
    >>> sih.circuit_weights(tokens, task, sih.construct(task, target="bayes").circuit)[0, -1]  # the posterior
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    check_task(task, Task)
    check_kind("circuit", circuit, Circuit, "a circuit, e.g. sih.construct(task).circuit")
    return circuit.weights(check_states(tokens, task), task)
