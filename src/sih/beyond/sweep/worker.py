"""One run of a sweep, on one thread, in a process that may be stopped or lost at any moment."""

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
    """Says what a worker trains and how, in plain values that can be sent anywhere."""

    name: str
    config: dict[str, Any]
    folder: str
    path: str
    """how the model computes: the same for all, so that one configuration gives one result whoever trains it."""
    device: str = "cpu"
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    keep_every: int | None = None
    """keep the weights at every so many steps, too, and write the formation that they show."""


@dataclass(frozen=True)
class News:
    """Says how far a run is: `state` is "running", "finished", "stopped" or "failed", and then `why`."""

    name: str
    step: int
    state: str = "running"
    why: str = ""


def work(job: Job, tell: Callable[[News], None], stopped: Sequence[object] = ()) -> News:
    """Train a run to its end, from wherever its folder stands, and say how it went.

    Once there is anything in `stopped` it saves and ends. What goes wrong in one run is news, not an exception.
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
        with suppress(ValueError, OSError):  # the table of formations says why there is none
            keep_formation(Run(Path(job.folder)))
    return News(job.name, writer.config.optimiser.steps, "finished")
