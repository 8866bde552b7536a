"""The largest error of a circuit for several masks, temperatures and number formats."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch

from sih.base.errors import dtype_name
from sih.circuits.build import construct
from sih.circuits.circuit_table import CIRCUITS, circuit_kind, option_names
from sih.circuits.verification import verify
from sih.task import Task


def error_table(
    task: Task,
    *,
    target: str = "paper",
    lams: Sequence[float] = (100.0, 500.0, 5000.0),
    betas: Sequence[float] = (1.0, 100.0, 1000.0),
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    **options: Any,
) -> list[dict[str, Any]]:
    """Return the largest error for each combination of masks, temperature and number
    format.

    An entry is None if `construct` refuses the masks. A circuit that chooses its own
    temperature has one row per mask strength, with beta None.
    """
    rows: list[dict[str, Any]] = []
    has_beta = "beta" in option_names(circuit_kind(CIRCUITS, target))
    for dtype, beta, lam in itertools.product(dtypes, betas if has_beta else (None,), lams):
        row: dict[str, Any] = {
            "dtype": dtype_name(dtype),
            "lam": lam,
            "beta": beta,
            "max_error": None,
        }
        try:
            model = construct(task, target=target, lam=lam, beta=beta, dtype=dtype, **options)
        except ValueError as refusal:
            row["refused"] = str(refusal)
        else:
            found = verify(model, task)
            row.update(max_error=found.max_error, tolerance=found.tolerance, ok=found.ok)
        rows.append(row)
    return rows
