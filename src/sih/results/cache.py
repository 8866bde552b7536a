"""The data of experiments on disk, kept by content: nothing is computed twice.

    OUT/data/NAME.json    the data, and a key: a digest of the configuration, of the trained models that were read, and
                          of the source that computed it. With another key, or damaged, it is computed anew.
    OUT/data/NAME.csv     its table

Everything is computed on one thread, so that the number of cores does not change the last digits.
"""

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch

from sih.files import read_json, write_json, write_rows
from sih.models.kernels.choice import fastest
from sih.models.kernels.threads import limited_threads
from sih.results import sources
from sih.results.experiment import Experiment
from sih.results.record_json import plain, record_from
from sih.runs.run_store import SHIPPED, RunStore

D = TypeVar("D")
RUN_FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


@dataclass(frozen=True)
class Kept(Generic[D]):
    """Holds an experiment's data as it is on disk.

    `models` says where each trained model came from, `left_out` which of those it asks for were not there. Without any
    of them nothing is computed: `data` is None and `missing` says what it needs.
    `computed` says whether it was just now; `files` are the data and, if there is one, its table.
    """

    experiment: Experiment[Any, D]
    data: D | None
    models: dict[str, str]
    digest: str = ""
    computed: bool = False
    missing: str = ""
    files: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()


def keep(experiment: Experiment[Any, D], out: Path, store: RunStore) -> Kept[D]:
    """Take the experiment's data from `out` where it is still right, or else compute it and write it there."""
    store = store_of(experiment, store)
    kept = find(experiment, out, store) or _compute(experiment, out, store)
    if kept.data is None:
        return kept
    files, rows = [_data_file(experiment, out)], experiment.table(kept.data)
    if rows:
        files.append(out / "data" / f"{experiment.name}.csv")
        write_rows(files[-1], rows)
    absent = tuple(
        name for name in experiment.reads(experiment.config, store) if name not in kept.models
    )
    return dataclasses.replace(kept, files=tuple(files), left_out=absent)


def store_of(experiment: Experiment[Any, Any], store: RunStore) -> RunStore:
    """Return where an experiment's models are looked for: an experiment may read shipped models alone."""
    return RunStore() if experiment.shipped else store


def find(experiment: Experiment[Any, D], out: Path, store: RunStore) -> Kept[D] | None:
    """Find the data kept under today's key, whole and unchanged, or return None if it has to be computed."""
    store = store_of(experiment, store)
    models = models_read(experiment, store)
    names = experiment.reads(experiment.config, store)
    if names and not models:
        return Kept(experiment, None, {}, missing=f"needs {' or '.join(names)}, not trained yet")
    try:
        record = read_json(_data_file(experiment, out))
        values: dict[str, Any] = record["data"]
        if record["key"] != data_key(experiment, store) or record["digest"] != digest_of(values):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    return Kept(experiment, record_from(experiment.data, values), models, record["digest"])


def _compute(experiment: Experiment[Any, D], out: Path, store: RunStore) -> Kept[D]:
    with limited_threads(1):
        values = plain(experiment.compute(experiment.config, store))
    models, digest = models_read(experiment, store), digest_of(values)
    asked = {
        "name": experiment.name,
        "key": data_key(experiment, store),
        "config": dataclasses.asdict(experiment.config),
    }
    write_json(
        _data_file(experiment, out), {**asked, "models": models, "digest": digest, "data": values}
    )
    return Kept(experiment, record_from(experiment.data, values), models, digest, computed=True)


def models_read(experiment: Experiment[Any, Any], store: RunStore) -> dict[str, str]:
    """Say which of the experiment's trained models there are, and where they come from, in words for the report."""
    store = store_of(experiment, store)
    found = {name: store.find(name) for name in experiment.reads(experiment.config, store)}
    return {
        name: "shipped" if path.parent == SHIPPED else str(path)
        for name, path in found.items()
        if path
    }


def data_key(experiment: Experiment[Any, Any], store: RunStore) -> str:
    """Digest all that the data depends on, so that equal keys mean equal data."""
    store = store_of(experiment, store)
    folders = {name: store.find(name) for name in experiment.reads(experiment.config, store)}
    return digest_of(
        {
            "name": experiment.name,
            "config": dataclasses.asdict(experiment.config),
            "models": {name: folder and _folder_digest(folder) for name, folder in folders.items()},
            "source": sources.digest(experiment.compute.__module__),
            "torch": torch.__version__,
            "compiled": fastest().compiled,
        }
    )


def digest_of(value: Any) -> str:
    """Digest a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _data_file(experiment: Experiment[Any, Any], out: Path) -> Path:
    return out / "data" / f"{experiment.name}.json"


def _folder_digest(folder: Path) -> list[str]:
    return [
        hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in RUN_FILES
        if (folder / name).exists()
    ]
