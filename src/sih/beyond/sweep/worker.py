"""One run of a sweep, on one thread, in a process that may be stopped or lost at any
moment.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sih.attention.circuit_formation import keep_formation
from sih.training.config_file import from_json
from sih.training.runs.run import Run
from sih.training.runs.run_writer import CHECKPOINT_SECONDS, RunWriter
from sih.training.trainer import DivergedError

SECONDS_A_REPORT = 0.5


@dataclass(frozen=True)
class Job:
    """A worker's configuration and folder, in plain values that can be sent anywhere."""

    name: str
    config: dict[str, Any]
    folder: str
    path: str
    """Backend of the model: the same for all, so that one configuration gives one
    result on any worker."""
    device: str = "cpu"
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    keep_every: int | None = None
    """Save the weights every N steps too, and write the formation that they show."""


@dataclass(frozen=True)
class News:
    """Progress of a run: `state` is "running", "finished", "stopped" or "failed"; then
    `why` has the reason.
    """

    name: str
    step: int
    state: str = "running"
    why: str = ""


def work(job: Job, tell: Callable[[News], None], stopped: Sequence[object] = ()) -> News:
    """Train a run to its end from its folder's state, and return the outcome.

    If `stopped` contains anything, it saves and ends. Errors in one run are news, not
    exceptions.
    """
    step, told = 0, time.monotonic()
    try:
        how: dict[str, Any] = {"device": job.device, "path": job.path, "keep_every": job.keep_every}
        how["checkpoint_seconds"] = job.checkpoint_seconds
        writer = RunWriter(from_json(job.config), Path(job.folder), threads=1, **how)
        for found in writer:
            step = found.step
            if stopped:
                writer.save()
                return News(job.name, step, "stopped")
            if time.monotonic() - told >= SECONDS_A_REPORT:
                tell(News(job.name, step))
                told = time.monotonic()
    except (ValueError, DivergedError, MemoryError, RuntimeError, OSError) as error:
        why = (str(error) or type(error).__name__).splitlines()[0]
        return News(job.name, step, "failed", why)
    if job.keep_every:
        with suppress(ValueError, OSError):  # the table of formations has the reason
            keep_formation(Run(Path(job.folder)))
    return News(job.name, writer.config.optimiser.steps, "finished")
