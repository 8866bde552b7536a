"""`circuit_weights`: what a circuit makes of sequences, by its closed form."""

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
    """Return the attention that the last layer pays to the token each lag would copy.

    It is right from `circuit.first_exact_position` on. This is the fast way to use a
    construction: no weights are run.

    Args:
        tokens: the sequences.
        task: what they were drawn from.
        circuit: `model.circuit` of a constructed model.

    >>> import sih, torch
    >>> task = sih.Task([[0.8, 0.2], [0.4, 0.6]], lags=(1, 2), length=16)
    >>> tokens = torch.tensor([[0, 1, 1, 0]])
    >>> sih.circuit_weights(tokens, task, sih.construct(task, target="bayes").circuit)[0, -1]  # the posterior
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    check_task(task, Task)
    check_kind("circuit", circuit, Circuit, "a circuit, e.g. sih.construct(task).circuit")
    return circuit.weights(check_states(tokens, task), task)
