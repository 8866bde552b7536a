"""`construct_parents(task, ...)`: weights written by hand for any table of parents."""

from __future__ import annotations

from typing import Any, Literal

import torch

from sih.base.errors import FieldError, check_kind
from sih.beyond.any_parents.parents_table import PARENTS_CIRCUITS
from sih.circuits.build import built
from sih.circuits.circuit_table import CIRCUITS
from sih.models.disentangled.dense import DisentangledTransformer
from sih.task import ParentsTask


def construct_parents(
    task: ParentsTask,
    *,
    target: str = "paper",
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> DisentangledTransformer:
    r"""Return a model with hand-written weights that identifies which row of a table of
    parents generated a sequence.

    The model stores its circuit as `circuit`. Its notes, which are saved with it,
    contain the circuit and the task.

    Args:
        task: A task with a table of parents. For lags use `sih.construct`.
        target: "paper", the selective estimator, or "bayes", the Bayesian model average
            up to the bound that `sih.verify` reports.
        readout: "probability" ($P^\top$), or "logit" ($\log P^\top$ before a softmax).
        dtype: torch.float64 or torch.float32.
        options: Options of the circuit; None leaves the choice to it.
            `PaperParentsOptions` and `BayesParentsOptions` explain theirs. paper:
            third, evidence, lam, beta, temper; bayes: third, lam, temper, symmetric.

    Returns:
        A model with (batch, time) tokens as input and (batch, time, state) predictions.

    >>> import sih
    >>> task = sih.ParentsTask([[0.9, 0.1], [0.5, 0.5]], [[-1, 0, 1, 2], [-1, 0, 0, 1]], length=3)
    >>> sih.construct_parents(task).circuit.third
    'parents'
    """
    wanted = "a table of parents, e.g. sih.ParentsTask(P, parents=[[-1, 0, 1], [-1, 0, 0]])"
    check_kind("task", task, ParentsTask, wanted)
    if isinstance(target, str) and target in CIRCUITS.keys() - PARENTS_CIRCUITS.keys():
        raise FieldError(
            "target",
            f"the target {target!r} is for lags; of a table of parents it is 'paper' or 'bayes'",
        )
    model: DisentangledTransformer = built(PARENTS_CIRCUITS, task, target, options, readout, dtype)
    return model
