"""Training into a run folder. A run can be stopped at any moment and resumed.

`run.py` describes the files.
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sih.base.errors import FieldError, check_device, check_sizes
from sih.base.files import atomic_write, check_place, reading, tensor_bytes, write_json
from sih.base.files.atomic import explained, is_part, remove_leftovers
from sih.base.files.tensor_file import check_sum, digest_of_tensors, write_summed
from sih.models import KINDS
from sih.models.fast.threads import limited_threads
from sih.models.storage import weights_file
from sih.training.config import TrainConfig
from sih.training.config_file import to_json
from sih.training.runs.run import (
    CHECKPOINT,
    CONFIG,
    ENVIRONMENT,
    KEPT,
    METRICS,
    WEIGHTS,
    Run,
    kept_path,
    read_checkpoint,
)
from sih.training.trainer import Step, Trainer

LOG_EVERY = 10
CHECKPOINT_SECONDS = 30.0
"""Seconds of work that a kill -9 may cost. The times of checkpoints do not change the
result."""
CLOCKS = {"seconds": time.monotonic, "core_seconds": time.process_time}
"""Durations of a run: time by the clock, and time of all cores together, which a busy
machine hardly changes."""


class RunWriter:
    """Training of a configuration in a folder: `for step in writer: ...`.

    It starts from the folder's current state. `save()` between two steps makes a
    checkpoint at once. Making a writer already writes the configuration, so an
    unwritable folder is noticed before any work is done. The run's number of threads
    applies as long as its steps are iterated. A new run uses the backend `path`, by
    default the fastest here. `keep_every` is the number of steps between weights kept,
    in half precision, in the folder `kept`.

    An unfinished run can be resumed with another number of steps if nothing so far
    depends on that number. It then ends with the bytes of a run that had it from the
    start.

    `loss` is the last loss written: the mean over the steps since the one written
    before.
    """

    def __init__(
        self,
        config: TrainConfig,
        folder: str | Path,
        *,
        device: str = "cpu",
        threads: int | None = None,
        checkpoint_seconds: float = CHECKPOINT_SECONDS,
        path: str | None = None,
        keep_every: int | None = None,
    ) -> None:
        self.config, self.folder = config, Path(folder)
        self.checkpoint_seconds, self.keep_every = checkpoint_seconds, keep_every
        self.losses = list[float]()
        self.loss: float | None = None
        if keep_every is not None:
            check_sizes(keep_every=keep_every)
        check_device(device)
        new = self._check_folder()
        begun = Run(self.folder).environment
        environment = dict(begun) or describe_environment(device, threads)
        self.taken = {
            name: float(environment.pop(name, 0.0)) for name in CLOCKS if name in begun or not begun
        }
        with limited_threads(int(environment["threads"])):
            self.trainer = Trainer(
                config, device, _path_begun_with(environment, config.model.kind) or path
            )
        self.environment = {**environment, "path": self.trainer.path}
        self.resumed = (self.folder / CHECKPOINT).exists()
        if new:
            write_json(self.folder / CONFIG, to_json(config), indent=2)

    @property
    def finished(self) -> bool:
        return Run(self.folder).finished

    def __iter__(self) -> Iterator[Step]:
        with _only_one(self.folder), limited_threads(int(self.environment["threads"])):
            if self.finished:
                if self.resumed:
                    check_sum(self.folder / WEIGHTS)  # before the only other copy is removed
                    (self.folder / CHECKPOINT).unlink()
                return
            if (self.folder / WEIGHTS).exists() and not self.resumed:
                raise ValueError(f"{self.folder / WEIGHTS} is damaged; remove it to train anew")
            with self._explained(), open(self.folder / METRICS, "ab") as self.metrics:
                self._begin()
                saved = time.monotonic()
                for step in self.trainer:
                    self._record(step)
                    if self.keep_every and step.step and step.step % self.keep_every == 0:
                        self._keep(step)
                    if time.monotonic() - saved >= self.checkpoint_seconds:
                        self.save()
                        saved = time.monotonic()
                    yield step
                self._finish()

    def save(self) -> None:
        """Write a checkpoint of the run in its current state."""
        with self._explained():
            os.fsync(self.metrics.fileno())
            state, note = (
                self.trainer.state(),
                {"metrics": self.metrics.tell(), "losses": self.losses},
            )
            note["sha256"] = digest_of_tensors(state, [*note.values()])
            with atomic_write(self.folder / CHECKPOINT) as file:
                file.write(tensor_bytes(state, {"run": json.dumps(note)}))
            self._write_environment()

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.folder, "; what was saved is kept")

    def _begin(self) -> None:
        remove_leftovers(self.folder)
        length = 0
        if self.resumed:
            state, note = read_checkpoint(self.folder / CHECKPOINT)
            with reading(self.folder / CHECKPOINT, "is of another run (remove it to start anew)"):
                self.trainer.restore(state)
            length, self.losses = note["metrics"], note["losses"]
            if self.metrics.tell() < length:
                raise ValueError(
                    f"{self.folder / METRICS} is shorter than when the checkpoint was made; start anew"
                )
        self.metrics.truncate(length)
        self.metrics.seek(0, os.SEEK_END)
        needed = (1 if self.resumed else 2) * sum(
            value.nbytes for value in self.trainer.state().values()
        )
        if shutil.disk_usage(self.folder).free < needed:
            raise ValueError(
                f"{self.folder}: the disk is nearly full; a run needs {needed / 1e6:.0f} MB"
            )
        self.since = {name: clock() for name, clock in CLOCKS.items()}
        if not self.resumed:
            self.save()

    def _record(self, step: Step) -> None:
        if step.step == 0 and self.metrics.tell():
            return  # resumed before the first update: recorded already
        line: dict[str, Any] = {"step": step.step}
        if step.loss is not None:
            self.losses.append(step.loss)
        if self.losses and (step.step % LOG_EVERY == 0 or step.evaluation):
            self.loss = sum(self.losses) / len(self.losses)
            line |= {"loss": self.loss, "learning_rate": step.learning_rate}
            self.losses = []
        if step.evaluation:
            line |= {"kl": step.evaluation.mean_kl, "kl_along": _rounded(step.evaluation.model)}
            if step.step == 0:
                line |= {"ml": step.evaluation.ml_kl, "bma": step.evaluation.bma_kl}
                line |= {
                    "ml_along": _rounded(step.evaluation.ml),
                    "bma_along": _rounded(step.evaluation.bma),
                }
        if len(line) > 1:
            with self._explained():
                self.metrics.write((json.dumps(line) + "\n").encode())
                self.metrics.flush()

    def _finish(self) -> None:
        with self._explained():
            os.fsync(self.metrics.fileno())
            self._write_environment()
            write_summed(
                self.folder / WEIGHTS, weights_file(self.trainer.model, self.config.stored)
            )
            (self.folder / CHECKPOINT).unlink()

    def _keep(self, step: Step) -> None:
        with self._explained():
            (self.folder / KEPT).mkdir(exist_ok=True)
            with atomic_write(kept_path(self.folder, step.step)) as file:
                file.write(weights_file(step.model, "float16"))

    def _check_folder(self) -> bool:
        """Return whether the folder still lacks its configuration.

        Raises a ValueError if this run cannot be in the folder.
        """
        if (self.folder / CONFIG).exists():
            before = Run(self.folder)
            if before.left_out and not (before.finished and before.config == self.config):
                raise ValueError(
                    f"{self.folder} is a copy that can't be trained on: {before.left_out}; "
                    "train in a folder of your own, e.g. --out runs/mine"
                )
            if self._differs_in_steps_alone(before):
                return True
            ours, theirs = self.config.flat(), before.config.flat()
            for name in ours:
                if name not in theirs or ours[name] != theirs[name]:
                    difference = f"{name} is {theirs.get(name)} there and {ours[name]} here"
                    raise ValueError(
                        f"{self.folder} holds another run: {difference}; choose another folder"
                    )
            return False
        check_place(self.folder)
        foreign = self.folder.exists() and (
            not self.folder.is_dir() or any(not is_part(path) for path in self.folder.iterdir())
        )
        if foreign:
            raise ValueError(f"{self.folder} is not empty and holds no run; choose another folder")
        return True

    def _differs_in_steps_alone(self, before: Run) -> bool:
        """Return whether the folder's run is unfinished and so far equals one of this
        configuration.
        """
        steps = self.config.optimiser.steps
        if (
            self.config.optimiser.schedule != "constant"
            or before.finished
            or before.config == self.config
        ):
            return False
        if before.config.replace(steps=steps) != self.config:
            return False
        done = (
            int(read_checkpoint(self.folder / CHECKPOINT)[0]["step"])
            if (self.folder / CHECKPOINT).exists()
            else 0
        )
        if done > steps or (done == steps and done % self.config.evaluation.evaluate_every):
            raise FieldError(
                "steps", f"{self.folder} is at step {done:,} already; steps is more than that"
            )
        return True

    def _write_environment(self) -> None:
        now = {name: clock() for name, clock in CLOCKS.items()}
        self.taken = {
            name: before + now[name] - self.since[name] for name, before in self.taken.items()
        }
        self.since = now
        rounded = {name: round(seconds, 1) for name, seconds in self.taken.items()}
        write_json(self.folder / ENVIRONMENT, {**self.environment, **rounded}, indent=2)


def describe_environment(device: str = "cpu", threads: int | None = None) -> dict[str, Any]:
    """Return the environment of a run: versions, processor and threads.

    A run's bytes depend on these, on its configuration and on its backend.
    """
    if threads is not None and threads < 1:
        raise FieldError("threads", f"threads is a whole number, at least 1; got {threads}")
    return {
        "sih": metadata.version("selective-induction-heads"),
        "commit": _commit(),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": torch.backends.cpu.get_cpu_capability(),
        "device": device,
        "threads": threads or torch.get_num_threads(),
    }


def _path_begun_with(environment: dict[str, Any], kind: str) -> str | None:
    """Return the backend of an earlier run, read from its environment.

    None leaves the choice to the machine.
    """
    path = environment.get("path") or {"torch": "fused", "compiled": "compiled"}.get(
        environment.get("attention", "")
    )
    return path if path in KINDS[kind].paths else None


def _commit() -> str | None:
    """Return the last commit of the package, if it is run from a repository."""
    command = ["git", "-C", str(Path(__file__).parents[2]), "log", "-1", "--format=%H", "--", "."]
    try:
        return (
            subprocess.run(
                command, capture_output=True, text=True, timeout=10, check=True
            ).stdout.strip()
            or None
        )
    except (OSError, subprocess.SubprocessError):
        return None


@contextmanager
def _only_one(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes, which would undo each other's work.

    The system releases a killed process's lock.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ValueError(f"{folder} is being trained by another process") from None
    finally:
        os.close(descriptor)


def _rounded(curve: Tensor) -> list[float]:
    """Return a curve with six digits, more than its sampling error needs."""
    return [float(f"{value:.6g}") for value in curve.tolist()]
