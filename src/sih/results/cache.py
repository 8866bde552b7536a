"""Results of experiments, computed once and stored by content.

    OUT/data/NAME.json .npz   the data, and a key: a digest of the configuration, of the trained
                              models and of the source that computes it

Results with another key, or damaged ones, are recomputed. Everything runs on one
thread, so that the number of cores does not change the last digits.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

import torch

from sih.models.fast.choice import fastest
from sih.models.fast.threads import limited_threads
from sih.results import sources
from sih.results.data import (
    arrays_file,
    data_file,
    digest_of,
    read_about,
    read_data,
    write_data,
)
from sih.results.experiment import Data, Experiment
from sih.training.runs.run_store import SHIPPED, RunStore

RUN_FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


@dataclass(frozen=True, eq=False)
class Result(Generic[Data]):
    """The result of an experiment, or the models that it needs if none of them exists."""

    experiment: Experiment[Any, Data]
    data: Data | None
    digest: str = ""
    models: dict[str, str] = dataclasses.field(default_factory=dict)
    """The origin of each trained model."""
    absent: tuple[str, ...] = ()
    """Requested models that do not exist."""
    files: tuple[Path, ...] = ()
    computed: bool = False
    """Whether the result was computed just now."""

    @property
    def missing(self) -> str:
        """Return the models that must be trained first, empty if there is data."""
        if self.data is not None:
            return ""
        return f"needs {' or '.join(self.absent)}, not trained yet"


def compute_once(experiment: Experiment[Any, Data], out: Path, store: RunStore) -> Result[Data]:
    """Return the result stored under `out`, or compute and store it."""
    store = store_of(experiment, store)
    found = look_up(experiment, out, store)
    if found is not None:
        return found
    with limited_threads(1):
        data = experiment.compute(experiment.config, store)
    about = {
        "name": experiment.name,
        "key": data_key(experiment, store),
        "config": dataclasses.asdict(experiment.config),
        "models": models_read(experiment, store),
    }
    write_data(out / "data" / experiment.name, data, about)
    return dataclasses.replace(stored(experiment, out, store), computed=True)


def look_up(experiment: Experiment[Any, Data], out: Path, store: RunStore) -> Result[Data] | None:
    """Return the result stored under today's key, or None if it must be computed."""
    store = store_of(experiment, store)
    asked = folders(experiment, store)
    if asked and not any(asked.values()):
        return Result(experiment, None, absent=tuple(asked))
    try:
        about = read_about(out / "data" / experiment.name)
        if about["key"] != data_key(experiment, store):
            return None
        return stored(experiment, out, store)
    except ValueError:
        return None


def stored(experiment: Experiment[Any, Data], out: Path, store: RunStore) -> Result[Data]:
    """Return the result on disk, whatever its key; raise a ValueError if it is damaged."""
    stem = out / "data" / experiment.name
    asked = folders(experiment, store)
    return Result(
        experiment,
        read_data(stem, experiment.data),
        digest=read_about(stem)["digest"],
        models=models_read(experiment, store),
        absent=tuple(name for name, folder in asked.items() if folder is None),
        files=(data_file(stem), arrays_file(stem)),
    )


def store_of(experiment: Experiment[Any, Any], store: RunStore) -> RunStore:
    """Return the store in which models are searched: some experiments read shipped
    models alone.
    """
    return RunStore() if experiment.shipped else store


def data_key(experiment: Experiment[Any, Any], store: RunStore) -> str:
    """Return the digest of everything that the data depends on: equal keys mean equal
    data.
    """
    asked = folders(experiment, store_of(experiment, store))
    return digest_of(
        {
            "name": experiment.name,
            "config": dataclasses.asdict(experiment.config),
            "models": {name: folder and digests_of_run(folder) for name, folder in asked.items()},
            "source": sources.digest(experiment.compute.__module__),
            "torch": torch.__version__,
            "compiled": fastest().compiled,
        }
    )


def folders(experiment: Experiment[Any, Any], store: RunStore) -> dict[str, Path | None]:
    """Return the folder of each trained model that the experiment requests."""
    return {name: store.find(name) for name in experiment.reads(experiment.config, store)}


def models_read(experiment: Experiment[Any, Any], store: RunStore) -> dict[str, str]:
    """Return the origins of the existing models, in words for the report."""
    asked = folders(experiment, store_of(experiment, store))
    return {
        name: "shipped" if folder.parent == SHIPPED else str(folder)
        for name, folder in asked.items()
        if folder is not None
    }


def digests_of_run(folder: Path) -> list[str]:
    """Return the digests of a run's files."""
    paths = [folder / name for name in RUN_FILES if (folder / name).exists()]
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
