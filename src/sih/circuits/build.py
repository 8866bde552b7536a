"""`construct(task, ...)`: a transformer with weights written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

import torch

from sih.base.errors import FieldError, check_choice, check_kind, dtype_name
from sih.circuits.any_circuit import AnyCircuit
from sih.circuits.circuit_table import (
    OF_KIND,
    circuit_kind,
    circuit_options,
    circuits_of,
)
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.relative.disentangled_relative import DisentangledRelativeTransformer
from sih.models.relative.relative_transformer import RelativeTransformer
from sih.models.standard.transformer import Transformer
from sih.task import ParentsTask, Task

AnyConstructed = (
    DisentangledTransformer | Transformer | DisentangledRelativeTransformer | RelativeTransformer
)


@overload
def construct(
    task: Task,
    *,
    target: str = "paper",
    kind: Literal["disentangled"] = "disentangled",
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> DisentangledTransformer: ...


@overload
def construct(
    task: Task,
    *,
    target: str = "paper",
    kind: Literal["relative"],
    form: Literal["disentangled"] = "disentangled",
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> DisentangledRelativeTransformer: ...


@overload
def construct(
    task: Task,
    *,
    target: str = "paper",
    kind: Literal["relative"],
    form: Literal["standard"],
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> RelativeTransformer: ...


@overload
def construct(
    task: Task,
    *,
    target: str = "paper",
    kind: Literal["standard"],
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> Transformer: ...


def construct(
    task: Task | ParentsTask,
    *,
    target: str = "paper",
    kind: str = "disentangled",
    readout: Literal["probability", "logit"] = "probability",
    dtype: torch.dtype = torch.float64,
    **options: Any,
) -> AnyConstructed:
    r"""Return a model with hand-written weights: the selective induction head for this
    task.

    The model stores its circuit as `circuit`. Its notes, which are saved with it,
    contain the circuit and the task.

    Args:
        task: A task with lags. For a table of parents use `sih.construct_parents`.
        target: The kind of circuit. "paper" is the circuit of Prop. 1, for any set of
            lags; "two-lags" is the paper's single head for two lags; "bayes" is the
            Bayesian model average up to the bound that `sih.verify` reports; "looking"
            identifies the lag by the attention pattern of layer 2.
        kind: "disentangled", "standard" or "relative". "standard" is a standard
            transformer with a width independent of the length, for target "bayes"
            (`sih.to_standard` converts the others). "relative" has relative positions:
            one head per layer, for any lags and any length, for targets "paper" and
            "bayes".
        readout: "probability" ($P^\top$), or "logit" ($\log P^\top$ before a softmax,
            the paper's footnote).
        dtype: torch.float64 or torch.float32.
        options: Options of the circuit; None leaves the choice to it. `PaperOptions`,
            `TwoLagOptions`, `BayesOptions` and `LookingOptions` explain theirs. paper:
            third, heads, evidence, sink, lam, beta, temper; two-lags: lam, beta,
            temper; bayes: heads, lam, temper, symmetric, reading, profile; looking:
            lam, temper, looking. Relative positions have `RelativePaperOptions` and
            `RelativeBayesOptions`. paper: form, lam, beta, temper; bayes: form, lam,
            temper, symmetric. form="standard" writes the same circuit as a standard
            transformer with one vector per offset.

    Returns:
        A model with (batch, time) tokens as input and (batch, time, state) predictions.

    >>> task = Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16)
    >>> construct(task, heads=1).circuit.head_of_offset
    (0, -1)
    >>> construct(task, kind="relative").predict(torch.zeros(1, 300, dtype=torch.int64)).shape
    torch.Size([1, 300, 2])
    """
    if isinstance(task, ParentsTask):
        raise FieldError(
            "task", "construct is for lags; sih.construct_parents(task) is for a table of parents"
        )
    check_kind("task", task, Task, "a task with lags, e.g. sih.Task(P, lags=(1, 2, 3), length=128)")
    check_choice("kind", kind, tuple(OF_KIND))
    known = circuits_of("disentangled" if kind == "standard" else kind)
    circuit_kind(known, target)  # or no circuit has this name
    if kind == "standard" and target not in circuits_of(kind):
        wide = "`sih.to_standard(construct(...))` makes a wide model of another circuit"
        raise FieldError("kind", f"kind='standard' is for target='bayes'; {wide}")
    model: AnyConstructed = built(circuits_of(kind), task, target, options, readout, dtype)
    return model


def built(
    circuits: Mapping[str, type[AnyCircuit]],
    task: Any,
    target: str,
    options: Mapping[str, Any],
    readout: str,
    dtype: torch.dtype,
) -> Any:
    """Return the model of a circuit from this table, with its notes."""
    check_choice("readout", readout, ("probability", "logit"))
    dtype_name(dtype)
    asked = circuit_options(circuits, target, options)
    circuit = circuit_kind(circuits, target).resolve(task, asked, dtype)
    model = circuit.build(task, readout, dtype)
    model.circuit = circuit
    model.notes = {"circuit": circuit.to_dict(), "task": task.to_dict()}
    return model.requires_grad_(False)
