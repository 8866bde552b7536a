"""Runs on disk: a run is a folder, and goes on from there however it was stopped.

    config.json               what is trained: a `TrainConfig`, every field of it (`sih.training.config_file`)
    metrics.jsonl             a line every 10 steps (mean loss since the last) and at every evaluation (KL)
    environment.json          versions, threads, device, the commit if there is one, and the seconds it took
    checkpoint.safetensors    model, optimiser and generator states, while the run is unfinished
    weights.safetensors       the trained model: the run is finished
    kept/step-NNNNNN...       weights along the way, in half precision, if they were asked for

**Resuming is exact.** On one kind of machine, with the versions, the number of threads (which is set again) and the
path in `environment.json`, a run that was killed at any moment, kill -9 included, and started again ends
with the same bytes in `config.json`, `metrics.jsonl` and `weights.safetensors` as one that was never stopped. Each file
appears whole or not at all; the metrics only grow, and the checkpoint says how long they were when it was made: what a
killed run wrote after it is cut off and made again. `sih.runs.run_writer` does so; here runs are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from sih.files import read_json, read_tensors, reading
from sih.models import Model
from sih.models.storage import load_weights
from sih.task import Task
from sih.training.config import TrainConfig
from sih.training.config_file import from_json

CONFIG, METRICS, ENVIRONMENT = "config.json", "metrics.jsonl", "environment.json"
CHECKPOINT, WEIGHTS, KEPT = "checkpoint.safetensors", "weights.safetensors", "kept"


@dataclass(frozen=True)
class Run:
    """Reads a run's folder."""

    folder: Path

    @cached_property
    def config(self) -> TrainConfig:
        path = self.folder / CONFIG
        with reading(path, "is no run's configuration", missing=f"{self.folder} is no run: it has no {CONFIG}"):
            return from_json(read_json(path))

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def finished(self) -> bool:
        return (self.folder / WEIGHTS).exists()

    @cached_property
    def task(self) -> Task:
        return self.config.task.build()

    @cached_property
    def model(self) -> Model:
        """The trained model, or the model at the last checkpoint if the run is unfinished."""
        model = self.config.model.build(self.task.num_states, self.task.length)
        if self.finished:
            load_weights(model, self.folder / WEIGHTS)
        else:
            state, _ = read_checkpoint(self.folder / CHECKPOINT)
            model.load_state_dict({n[len("model/") :]: w for n, w in state.items() if n.startswith("model/")})
        return model

    @property
    def kept(self) -> tuple[int, ...]:
        """The steps whose weights were kept along the way, `model_at(step)`."""
        return tuple(sorted(int(path.stem.split("-")[1]) for path in (self.folder / KEPT).glob("step-*.safetensors")))

    def model_at(self, step: int) -> Model:
        """Return the model after so many steps, one of `kept`."""
        if step not in self.kept:
            raise ValueError(f"{self.folder} kept no weights at step {step}; it has {list(self.kept) or 'none'}")
        model = self.config.model.build(self.task.num_states, self.task.length)
        load_weights(model, kept_path(self.folder, step))
        return model

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines of `metrics.jsonl`, but for a last one that is not whole, of a run that was killed."""
        try:
            lines = (self.folder / METRICS).read_text().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [json.loads(line) for line in lines]

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """The lines with a mean KL. The first, of step 0, also has maximum likelihood's and the Bayes average's."""
        return [line for line in self.metrics if "kl" in line]

    @cached_property
    def environment(self) -> dict[str, Any]:
        path = self.folder / ENVIRONMENT
        found: dict[str, Any] = read_json(path) if path.exists() else {}
        return found


def kept_path(folder: Path, step: int) -> Path:
    """Return the path of the weights that a run kept at a step."""
    return folder / KEPT / f"step-{step:06d}.safetensors"


def list_runs(parent: str | Path) -> list[Run]:
    """List the runs in a folder of runs, by name."""
    if not Path(parent).is_dir():
        raise ValueError(f"there is no folder {parent}; runs are made by `sih train`")
    return [Run(path.parent) for path in sorted(Path(parent).glob(f"*/{CONFIG}"))]


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the state of an unfinished run, and what was noted with it."""
    missing = f"{path.parent} has no {CHECKPOINT}: its run has not begun"
    with reading(path, "is damaged (remove it to start anew)", missing=missing):
        state, note = read_tensors(path)
        return state, json.loads(note["run"])
