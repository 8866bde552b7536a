"""Trained models on the page: a list of them, and whether one fits a task.

The list is made once, when the explorer starts. A name in a request is looked up in it,
never on the disk.
"""

from collections.abc import Mapping
from typing import Any

from sih.base.errors import FieldError
from sih.explorer.state import Matrix, matrix_json
from sih.models import KINDS
from sih.models.base import Model
from sih.task import Task
from sih.training.how_trained import how_trained, trained_briefly
from sih.training.runs.run import Run
from sih.training.runs.run_store import RunStore

Runs = Mapping[str, Run]


def all_runs(store: RunStore) -> Runs:
    """Return every finished run of the store on a task like the paper's, by name."""
    return store.finished(store.names(papers_task=True))[0]


def described(runs: Runs) -> list[dict[str, Any]]:
    """Return the name of each model, the task to set for it and its training, as JSON."""
    found = []
    for name, run in runs.items():
        if not _shown(run):
            continue
        config = run.config.task
        matrix = Matrix(config.matrix_law, config.matrix_seed, config.concentration)
        if config.matrix is not None:
            matrix = Matrix("rows", rows=tuple(map(tuple, run.task.P.tolist())))
        entry = {
            "name": name,
            "lags": config.lags,
            "states": config.states,
            "length": config.length,
        }
        how = {"trained": how_trained(run.config), "briefly": trained_briefly(run.config)}
        found.append({**entry, "heads": run.config.heads, "matrix": matrix_json(matrix), **how})
    return found


def fitting_model(where: str, name: str, task: Task, runs: Runs) -> Model:
    """Return the model of that name if it was trained for this task; raise an error
    about the entry `where` if not.
    """
    if name not in runs:
        raise FieldError(
            where, f"there is no trained model {ascii(name)[:60]}; there are {', '.join(runs)}"
        )
    if not _shown(runs[name]):
        kind = runs[name].config.model.kind
        raise FieldError(
            where,
            f"{name} is a {kind} model, whose output the page cannot split by what heads write",
        )
    trained = runs[name].task
    if not trained.same_chains(task) or task.length > trained.length:
        sizes = (
            f"{trained.num_states} states, up to {trained.length} tokens and a matrix of its own"
        )
        own = f"the lags {' '.join(map(str, trained.lags))}, {sizes}"
        raise FieldError(where, f"{name} was trained for {own}; choose it again to take its task")
    return runs[name].model


def _shown(run: Run) -> bool:
    """Return whether the page can draw models of the run's kind."""
    kind = KINDS[run.config.model.kind]
    return kind.scores_from_stream or kind.contributions is not Model.contributions
