"""Formation of the circuit in training, measured on a run's kept weights.

The events are copying, a selective head, and the circuit as a whole.
"""

from pathlib import Path

from sih.attention.circuit_signs import circuit_signs
from sih.models import Model
from sih.models.fast.threads import limited_threads
from sih.task import Batch, Task
from sih.training.runs.evaluate import as_run, fresh_batches, measure_on
from sih.training.runs.evaluation import FOUND_FROM, digest_of_weights
from sih.training.runs.formation import Checkpoint, Formation, write_formation
from sih.training.runs.run import WEIGHTS, Run

SEQUENCES = 128
"""Sequences per checkpoint: the first that `sih.evaluate` draws."""


def formation(run: Run | str | Path) -> Formation:
    """Return the steps at which the parts of the circuit first appear in a run.

    The parts are copying, a selective head, and the circuit as a whole. They are read
    from the weights kept in training (`sih train --keep-every N`) and, for a finished
    run, from the final weights.

        copying     a head below the last layer has half of its attention on one offset of 1 or more
        selective   a head of the last layer has 0.8 of the posterior's weight on the true lag, where that is above 1
        circuit     `way` is at least 0.9 in every window from 17 tokens on (`sih.evaluate`)

    Copying and selective are means over queries beyond a third of the length. Every
    checkpoint is measured on the same 128 fresh sequences, in 0.2 to 0.7 s at
    length 128. The file of `sih runs formation --keep` is read instead if there is one.

    Args:
        run: a `Run` or its folder.

    Returns:
        The formation: the steps `copying`, `selective` and `circuit`, each None if
        never reached.

    >>> import sih
    >>> sih.formation("paper-1.2.3-length32")
    Traceback (most recent call last):
    ValueError: paper-1.2.3-length32 kept no weights along the way; `sih train --keep-every N` keeps them
    """
    found = as_run(run)
    return found.formation or follow(found)


def keep_formation(run: Run) -> Formation:
    """Return the formation of a finished run, and write it if it is missing."""
    if run.formation is not None:
        return run.formation
    found = follow(run)
    write_formation(run.folder, found, digest_of_weights(run.folder / WEIGHTS))
    return found


@limited_threads(1)
def follow(run: Run) -> Formation:
    """Return measurements of a run's model at kept steps and at its end."""
    if not run.kept:
        raise ValueError(
            f"{run.name} kept no weights along the way; `sih train --keep-every N` keeps them"
        )
    task = _readable(run)
    batch = next(fresh_batches(task))[:SEQUENCES]
    checkpoints = [_measured(step, run.model_at(step), batch, task) for step in run.kept]
    end = run.config.optimiser.steps
    if run.finished and end not in run.kept:
        checkpoints.append(_measured(end, run.model, batch, task))
    return Formation(tuple(checkpoints), SEQUENCES)


def _readable(run: Run) -> Task:
    """Return the run's task, or raise a ValueError if its circuit cannot be read."""
    task = run.task
    if not isinstance(task, Task):
        wanted = "a task of one matrix and one lag a sequence"
        raise ValueError(
            f"{run.name}: a formation is read on {wanted}, not on {type(task).__name__}"
        )
    if task.length <= FOUND_FROM:
        message = f"a formation needs length {FOUND_FROM + 1} or more, a window from {FOUND_FROM} tokens on"
        raise ValueError(f"{run.name} has length {task.length}; {message}")
    return task


def _measured(step: int, model: Model, batch: Batch, task: Task) -> Checkpoint:
    signs = circuit_signs(model, batch, task)
    return Checkpoint(
        step, signs.copies, signs.selected, measure_on(batch.tokens, model, task).ways
    )
