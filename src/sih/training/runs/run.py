"""Runs on disk: a run is a folder, and can be resumed however it was stopped.

    config.json               what is trained: a `TrainConfig`, every field of it (`sih.training.config_file`)
    metrics.jsonl             a line every 10 steps (mean loss since the last) and at every evaluation (KL)
    environment.json          versions, threads, device, the commit if there is one, and the seconds it took
    checkpoint.safetensors    model, optimiser and generator states, while the run is unfinished
    weights.safetensors       the trained model: the run is finished; its checksum is in weights.sha256
    evaluation.json           KL on fresh sequences, if it was asked for (`sih runs evaluate`)
    formation.json            when the circuit appeared, if it was asked for (`sih runs formation`)
    kept/step-NNNNNN...       weights along the way, in half precision, if they were asked for

**Resuming is exact.** A run may be killed at any moment, kill -9 included, and started
again. It then ends with the same bytes in `config.json`, `metrics.jsonl` and
`weights.safetensors` as one that was never stopped. This holds on one kind of machine,
with the versions, the number of threads (which is set again) and the backend in
`environment.json`.

Each file appears whole or not at all. The metrics only grow, and the checkpoint stores
their length at that time. Later lines of a killed run are cut off and written again.
`run_writer.py` does so. This module reads runs and checks every file: a fault is a
ValueError that names it.

Runs that ship are smaller copies (`research/ship.py`): weights rounded to float16,
metrics of evaluations alone. Their `environment.json` says so, and their training
cannot be continued.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sih.base.errors import check_path, check_sizes
from sih.base.files import check_entries, read_header, read_json, read_tensors, reading
from sih.base.files.tensor_file import digest_of_tensors
from sih.base.showing import Drawn, Words
from sih.base.stats import quotient
from sih.models import Model
from sih.models.storage import load_weights
from sih.predictors.metrics import mean_by_position
from sih.training.config import TrainConfig
from sih.training.config_file import from_json
from sih.training.how_trained import how_trained
from sih.training.runs.evaluation import (
    EVALUATION,
    RunEvaluation,
    digest_of_weights,
    read_evaluation,
)
from sih.training.runs.formation import FORMATION, Formation, read_formation

CONFIG, METRICS, ENVIRONMENT = "config.json", "metrics.jsonl", "environment.json"
CHECKPOINT, WEIGHTS, KEPT = "checkpoint.safetensors", "weights.safetensors", "kept"
LEFT_OUT = "left_out"
"""The entry of the environment that lists the parts missing from a smaller copy of a
run."""
NUMBER = (int, float)
LINE: dict[str, type | tuple[type, ...]] = {
    "step": int,
    **dict.fromkeys(("loss", "learning_rate", "kl", "ml", "bma"), NUMBER),
    **dict.fromkeys(("kl_along", "ml_along", "bma_along"), list),
}
"""Entries that a line of the metrics may have."""
MACHINE: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("device", "torch", LEFT_OUT), str),
    **dict.fromkeys(("seconds", "core_seconds"), NUMBER),
    "threads": int,
}


@dataclass(frozen=True)
class Run(Drawn):
    """A run's folder: its configuration, its metrics and its model.

    `run.plot()` draws its course.

    Args:
        folder: the folder of the run.

    >>> import sih
    >>> run = sih.open_run("standard-1.2.3")
    >>> run  # doctest: +NORMALIZE_WHITESPACE
    Run(name='standard-1.2.3', model='standard', lags=(1, 2, 3), heads=(1, 3, 1), length=128,
        trained='SOAP, harmonic start, short sequences first, falling learning rate,
        layers restricted to their roles for 600 of 2,000 steps', steps='2000 of 2000',
        finished=True, kl_over_ml=0.7900 ± 0.0079)
    >>> run.config.task.lags, run.task.length, round(run.held_out_kl_over_ml, 2), run.finished
    ((1, 2, 3), 128, 0.79, True)
    """

    drawing = "sih.results.plots.run:draw_training"

    folder: Path

    def __post_init__(self) -> None:
        check_path(self.folder, "folder")
        object.__setattr__(self, "folder", Path(self.folder))

    def _facts(self) -> Mapping[str, Any]:
        try:
            config, measured = self.config, [line for line in self.metrics if "kl" in line]
            steps = f"{self.metrics[-1]['step'] if self.metrics else 0} of {config.optimiser.steps}"
            facts = {
                "name": self.name,
                "model": config.model.kind,
                **config.task.facts,
                "heads": config.heads,
            }
            how = {
                "length": config.task.length,
                "trained": Words(repr(how_trained(config))),
                "steps": steps,
            }
            return {**facts, **how, "finished": self.finished, **self._quality(bool(measured))}
        except (ValueError, OSError) as error:  # a folder that cannot be read still has a repr
            return {
                "folder": str(self.folder),
                "unreadable": str(error).replace(f"{self.folder}/", ""),
            }

    def _quality(self, measured: bool) -> dict[str, Any]:
        """Return KL/ML on fresh sequences, else on held-out ones if measured."""
        if self.evaluation is not None:
            return {"kl_over_ml": Words(self.evaluation.kl_over_ml.with_error())}
        return {"held_out_kl_over_ml": self.held_out_kl_over_ml} if measured else {}

    @cached_property
    def config(self) -> TrainConfig:
        """Return the configuration of the training."""
        path = self.folder / CONFIG
        with reading(
            path,
            "is no run's configuration",
            missing=f"{self.folder} is no run: it has no {CONFIG}",
        ):
            values = read_json(path)
            check_entries(values, {})
            return from_json(values)

    @property
    def name(self) -> str:
        """Return the folder's name."""
        return self.folder.name

    @property
    def finished(self) -> bool:
        """Return whether the weights are there, and whole by their header.

        `load_weights` also checks their content.
        """
        try:
            return bool(read_header(self.folder / WEIGHTS)[1])
        except ValueError:
            return False

    @cached_property
    def task(self) -> Any:
        """Return the task it is trained on, if the configuration names it."""
        return self.config.task.build()

    @cached_property
    def model(self) -> Model:
        """Return the trained model, or that of an unfinished run's last checkpoint."""
        path = self.folder / (WEIGHTS if (self.folder / WEIGHTS).exists() else CHECKPOINT)
        if path.name == CHECKPOINT:
            state, _ = read_checkpoint(path)
        task = self.config.task
        empty = partial(self.config.model.build, task.states, task.length)
        held = sum(math.prod(shape) for shape in read_header(path)[1].values())
        heads = sum(self.config.heads)
        if heads > held:  # each has a weight of its own
            raise ValueError(
                f"{self.folder / CONFIG} asks for {heads:,} heads, {path.name} holds {held:,} numbers"
            )
        with torch.device("meta"):  # no memory is taken before the file's size is known
            asked = sum(weight.numel() for weight in empty().parameters())
        if asked > held:
            raise ValueError(
                f"{self.folder / CONFIG} asks for {asked:,} weights, {path.name} holds {held:,} numbers"
            )
        model = empty()
        if path.name == WEIGHTS:
            load_weights(model, path)
            return model
        with reading(path, "holds another run's state"):
            model.load_state_dict(
                {n[len("model/") :]: w for n, w in state.items() if n.startswith("model/")}
            )
        return model

    @property
    def kept(self) -> tuple[int, ...]:
        """Return the steps at which weights were kept, for `model_at(step)`."""
        return tuple(
            sorted(
                int(path.stem.split("-")[1])
                for path in (self.folder / KEPT).glob("step-*.safetensors")
            )
        )

    def model_at(self, step: int) -> Model:
        """Return the model after this number of steps, one of `kept`.

        >>> import sih
        >>> run = sih.open_run("standard-1.2.3")
        >>> [run.model_at(step) for step in run.kept]  # `sih train --keep-every N` keeps some
        []
        """
        if step not in self.kept:
            raise ValueError(
                f"{self.folder} kept no weights at step {step}; it has {list(self.kept) or 'none'}"
            )
        task = self.config.task
        model = self.config.model.build(task.states, task.length)
        load_weights(model, kept_path(self.folder, step))
        return model

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """Return the lines of `metrics.jsonl`, without an unfinished last line.

        Means are computed again from the numbers by position. Up to version 0.2 the
        means in the file included the last position.
        """
        path = self.folder / METRICS
        if not path.exists():
            return []
        first_counted = self.config.task.first
        with reading(path, "holds no run's metrics"):
            found: list[dict[str, Any]] = []
            for number, text in enumerate(path.read_text().split("\n")[:-1], 1):
                try:
                    line = json.loads(text)
                    first = "kl" in line and not any("kl" in before for before in found)
                    check_entries(line, LINE, ("step", "ml", "bma") if first else ("step",))
                    for name in {"kl", "ml", "bma"} & line.keys():
                        if (along := line.get(f"{name}_along")) is not None:
                            if not all(isinstance(value, NUMBER) for value in along):
                                raise ValueError(f"{name}_along must hold numbers")
                            line[name] = mean_by_position(along, first_counted)
                except (ValueError, TypeError, RecursionError) as error:
                    raise ValueError(f"line {number}: {error}") from error
                found.append(line)
        return found

    @property
    def evaluations(self) -> list[dict[str, Any]]:
        """Return the lines with a mean KL.

        The first, of step 0, also has those of ML and BMA.
        """
        found = [line for line in self.metrics if "kl" in line]
        if not found and self.finished:
            raise ValueError(
                f"{self.folder / METRICS} holds no evaluation, though the run is finished"
            )
        return found

    @property
    def held_out_kl_over_ml(self) -> float:
        """Return the last KL/ML on the held-out sequences.

        Training reports this number. By default there are 512 sequences, with an error
        of about 0.05. `sih.evaluate(run)` has a smaller one.
        """
        return quotient(self.evaluations[-1]["kl"], self.evaluations[0]["ml"])

    @cached_property
    def evaluation(self) -> RunEvaluation | None:
        """Return the evaluation stored for these weights, or None."""
        if not (self.folder / EVALUATION).exists() or not self.finished:
            return None
        return read_evaluation(self.folder, digest_of_weights(self.folder / WEIGHTS))

    @cached_property
    def formation(self) -> Formation | None:
        """Return the formation stored for these weights, or None."""
        if not (self.folder / FORMATION).exists() or not self.finished:
            return None
        return read_formation(self.folder, digest_of_weights(self.folder / WEIGHTS))

    @cached_property
    def environment(self) -> dict[str, Any]:
        """Return versions, threads, device and seconds of the run."""
        path = self.folder / ENVIRONMENT
        if not path.exists():
            return {}
        with reading(path, "is no run's environment"):
            found: dict[str, Any] = read_json(path)
            check_entries(found, MACHINE, ("threads",))
            check_sizes(threads=found["threads"])
        return found

    @property
    def left_out(self) -> str:
        """Return what a smaller copy of a run leaves out, or nothing for a whole run."""
        said: str = self.environment.get(LEFT_OUT, "")
        return said


def kept_path(folder: Path, step: int) -> Path:
    """Return the file of the weights that a run kept at a step."""
    return folder / KEPT / f"step-{step:06d}.safetensors"


def list_runs(parent: str | Path) -> list[Run]:
    """Return the runs in a folder of runs, by name."""
    if not Path(parent).is_dir():
        raise ValueError(f"there is no folder {parent}; runs are made by `sih train`")
    return [Run(path.parent) for path in sorted(Path(parent).glob(f"*/{CONFIG}"))]


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the state of an unfinished run, and its note."""
    missing = f"{path.parent} has no {CHECKPOINT}: its run has not begun"
    with reading(path, "is damaged (remove it to start anew)", missing=missing):
        state, text = read_tensors(path)
        note = json.loads(text["run"])
        check_entries(note, {"metrics": int, "losses": list, "sha256": str}, ("metrics", "losses"))
        if note.pop("sha256", None) not in (
            None,
            digest_of_tensors(state, [note["metrics"], note["losses"]]),
        ):
            raise ValueError("its checksum is not the one that was noted")
        return state, note
