"""`construct(task, ...)`: a transformer whose weights are written by hand."""

from __future__ import annotations

from typing import Any, Literal, overload

import torch

from sih.checks import FieldError, check_choice, check_kind
from sih.construction.circuit import Circuit
from sih.construction.layers import write
from sih.construction.narrow import narrow_circuit, narrow_transformer
from sih.construction.parents_circuit import ParentsCircuit
from sih.construction.parents_specs import parents_spec
from sih.construction.specs import circuit_spec
from sih.models.disentangled.dense import DisentangledTransformer
from sih.models.standard.transformer import Transformer
from sih.task import ParentsTask, Task


@overload
def construct(
    task: Task | ParentsTask,
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
) -> DisentangledTransformer | Transformer:
    """Write the selective induction head for this task as the weights of a model.

    The model carries the `circuit` that its weights follow, and its notes, saved with it, hold circuit and task.

    Args:
        target: the kind of circuit, one of `sih.construction.specs.CIRCUITS`. "paper" is the circuit of Prop. 1, for
            any set of lags; "two-lags" the paper's single head for two lags; "bayes" the Bayesian model average up to
            the bound that `sih.verify` states; "looking" a second layer that tells lags apart by where it looks.
            For any parents (`ParentsTask`) there are "paper" and "bayes" (`sih.construction.parents_circuit`).
        kind: "disentangled", or "standard" for a standard transformer whose width does not grow with the length (target
            "bayes"; `sih.to_standard` makes wide ones of the others).
        readout: P^T ("probability") or log P^T before a softmax ("logit", the paper's footnote).
        dtype: torch.float64 or torch.float32.
        options: of that circuit, None for its own choice; `PaperCircuit`, `TwoLagCircuit`, `BayesCircuit` and
            `LookingCircuit` explain theirs. paper: third, heads, evidence, sink, lam, beta, temper; two-lags: lam,
            beta, temper; bayes: heads, lam, temper, symmetric, reading; looking: lam, temper, looking. Of a
            `ParentsTask`, paper: third, evidence, lam, beta, temper; bayes: third, lam, temper, symmetric.

    >>> task = Task([[0.9, 0.1], [0.5, 0.5]], lags=(1, 2), length=16)
    >>> construct(task, heads=1).circuit.head_of_offset
    (0, -1)
    """
    check_kind(
        "task",
        task,
        (Task, ParentsTask),
        "a task with a matrix, e.g. sih.Task(P, lags=(1, 2, 3), length=128)",
    )
    check_choice("kind", kind, ("disentangled", "standard"))
    circuit: Circuit | ParentsCircuit
    model: DisentangledTransformer | Transformer
    if kind == "standard":
        if isinstance(task, ParentsTask):
            raise FieldError(
                "kind", "the kind 'standard' is for lags; any parents are written as 'disentangled'"
            )
        circuit = narrow_circuit(task, circuit_spec(target, **options), dtype)
        model = narrow_transformer(task, circuit, readout, dtype)
    else:
        if isinstance(task, ParentsTask):
            circuit = parents_spec(target, **options).resolve(task, dtype)
        else:
            circuit = circuit_spec(target, **options).resolve(task, dtype)
        model = DisentangledTransformer(
            task.num_states,
            task.length,
            circuit.model_heads,
            temperature=1.0,
            readout=readout,
            dtype=dtype,
            init="zeros",
        )
        write(model, task, circuit, readout)
    model.circuit = circuit
    model.notes = {"circuit": circuit.to_dict(), "task": task.to_dict()}
    return model.requires_grad_(False)
