"""The trained models that come with the package, and whether one fits a task.

They are listed once, when the explorer starts. A name in a request is looked up in that list, never on the disk.
"""

from __future__ import annotations

from typing import Any

import torch

from sih.checks import FieldError
from sih.models.base import Model
from sih.runs.run_store import RunStore
from sih.task import Task


class Shelf:
    def __init__(self, store: RunStore) -> None:
        self.runs = {name: store.run(name) for name in store.names()}

    def describe(self) -> list[dict[str, Any]]:
        """For each model its name and the task to set for it."""
        found = []
        for name, run in self.runs.items():
            config = run.config.task
            matrix = (
                {"seed": config.matrix_seed, "concentration": config.concentration}
                if config.matrix is None
                else {"kind": "rows", "rows": run.task.P.tolist()}
            )
            entry = {"name": name, "lags": config.lags, "states": config.states, "length": config.length}
            found.append({**entry, "heads": run.config.heads, "matrix": matrix})
        return found

    def model(self, where: str, name: str, task: Task) -> Model:
        """The model of that name, if it was trained for this task."""
        if name not in self.runs:
            raise FieldError(where, f"there is no trained model {ascii(name)[:60]}; there are {', '.join(self.runs)}")
        run = self.runs[name]
        same = run.task.lags == task.lags and torch.equal(run.task.P, task.P)
        if not same or task.length > run.task.length:
            lags = " ".join(map(str, run.task.lags))
            raise FieldError(
                where,
                f"{name} was trained for the lags {lags}, {run.task.num_states} states, up to {run.task.length} tokens "
                "and a matrix of its own; choose it again to take its task",
            )
        return run.model
