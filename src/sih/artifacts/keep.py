"""Making figures, with their data kept: nothing is computed or drawn twice.

    OUT/data/NAME.json        the data, and a key: a digest of the configuration, of the trained models it read, and of
                              the source that computed it. Another key, or a damaged file: computed anew.
    OUT/data/NAME.csv         its table
    OUT/data/NAME.drawn.json  what the figures were drawn from, and their digests
    OUT/figures/NAME.pdf .svg .png

Everything is computed on one thread, so that the number of cores does not change the last digits; several figures go
to several processes.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import torch

from sih.artifacts import source_digest as sources
from sih.experiments.table import Entry
from sih.figures import style
from sih.files import atomic_write
from sih.runs.run_store import SHIPPED, RunStore

DRAWING = ("sih.figures.style",)
"""Modules that change how a figure looks, never what it shows."""
SHIPPED_ONLY = RunStore()
RUN_FILES = ("config.json", "metrics.jsonl", "weights.safetensors")


@dataclass(frozen=True)
class Made:
    """A figure on disk. `models` says where each trained model came from; without any of those it needs, nothing is
    made, and `missing` says so."""

    entry: Entry
    values: dict[str, Any]
    files: tuple[Path, ...]
    models: dict[str, str]
    computed: bool = False
    drawn: bool = False
    seconds: float = 0.0
    missing: str = ""

    @property
    def data(self) -> Any:
        return self.entry.data_type.from_dict(self.values)


def make(entry: Entry, out: Path, store: RunStore = SHIPPED_ONLY) -> Made:
    """The entry's data and figures under `out`, taken from there where they are still right.

    Trained models come from `store`.
    """
    began = time.monotonic()
    used = models_used(entry, store)
    if entry.models(store) and not used:
        return Made(entry, {}, (), {}, missing=f"needs {' or '.join(entry.models(store))}, not trained yet")
    key = data_key(entry, store)
    values = _read(out, entry.name, key)
    computed = values is None
    if values is None:
        values = _compute(entry, store)
        _write(_data_file(out, entry.name), _record(entry, key, used, values))
    data = entry.data_type.from_dict(values)
    files, drawn = _draw(entry, data, digest_of(values), out)
    return Made(entry, values, files, used, computed, drawn, time.monotonic() - began)


def is_made(entry: Entry, out: Path, store: RunStore = SHIPPED_ONLY) -> bool:
    """Whether `make` would find everything there."""
    if entry.models(store) and not models_used(entry, store):
        return True
    values = _read(out, entry.name, data_key(entry, store))
    return values is not None and _drawn_files(entry, digest_of(values), out) is not None


def make_all(
    entries: Sequence[Entry], out: Path, store: RunStore = SHIPPED_ONLY, jobs: int | None = None
) -> Iterator[Made]:
    """Each as soon as it is there: what is kept at once, the rest on `jobs` processes (one a core unless said)."""
    waiting = []
    for entry in entries:
        if is_made(entry, out, store):
            yield make(entry, out, store)
        else:
            waiting.append(entry)
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(waiting))
    if jobs <= 1:
        for entry in waiting:
            yield make(entry, out, store)
        return
    context, others = multiprocessing.get_context("spawn"), set(multiprocessing.active_children())
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker) as pool:
        try:
            futures = [pool.submit(make, entry, out, store) for entry in waiting]
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
                child.join()
            for leftover in out.glob("*/.*.part"):  # of a file that a worker was writing
                leftover.unlink()
            raise


def models_used(entry: Entry, store: RunStore) -> dict[str, str]:
    """Which of its trained models there are, and where they come from."""
    found = {name: store.find(name) for name in entry.models(store)}
    return {name: _source(folder) for name, folder in found.items() if folder}


def data_key(entry: Entry, store: RunStore) -> str:
    """Equal keys, equal data."""
    folders = {name: store.find(name) for name in entry.models(store)}
    return digest_of(
        {
            "name": entry.name,
            "config": dataclasses.asdict(entry.config),
            "models": {name: folder and _folder_digest(folder) for name, folder in folders.items()},
            "source": sources.digest(entry.module_name, without=DRAWING),
            "torch": torch.__version__,
        }
    )


def digest_of(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _compute(entry: Entry, store: RunStore) -> dict[str, Any]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        values = entry.compute(store).to_dict()
    finally:
        torch.set_num_threads(threads)
    plain: dict[str, Any] = json.loads(json.dumps(values))  # as the next run will find it
    return plain


def _record(entry: Entry, key: str, used: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    config = dataclasses.asdict(entry.config)
    head = {"name": entry.name, "key": key, "config": config, "models": used, "digest": digest_of(values)}
    return {**head, "data": values}


def _read(out: Path, name: str, key: str) -> dict[str, Any] | None:
    """The data kept under this key, whole and unchanged, or None."""
    try:
        record = json.loads(_data_file(out, name).read_bytes())
        values: dict[str, Any] = record["data"]
        return values if record["key"] == key and record["digest"] == digest_of(values) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _draw(entry: Entry, data: Any, data_digest: str, out: Path) -> tuple[tuple[Path, ...], bool]:
    kept = _drawn_files(entry, data_digest, out)
    if kept is not None:
        return kept, False
    files = style.save(entry.module.draw(data), out / "figures" / entry.name)
    if hasattr(entry.module, "table"):
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(entry.module.table(data))
        files.append(out / "data" / f"{entry.name}.csv")
        with atomic_write(files[-1]) as file:
            file.write(text.getvalue().encode())
    record = {"key": _drawing_key(entry, data_digest), "files": {str(f.relative_to(out)): _digest(f) for f in files}}
    _write(_drawn_file(out, entry.name), record)
    return tuple(files), True


def _drawn_files(entry: Entry, data_digest: str, out: Path) -> tuple[Path, ...] | None:
    """The figures, if they were drawn from this data by this source and have not been touched."""
    try:
        record = json.loads(_drawn_file(out, entry.name).read_bytes())
        files = {out / name: digest for name, digest in record["files"].items()}
        right = record["key"] == _drawing_key(entry, data_digest)
        return tuple(files) if right and all(_digest(path) == found for path, found in files.items()) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _drawing_key(entry: Entry, data_digest: str) -> str:
    return digest_of([data_digest, sources.digest(entry.module_name), matplotlib.__version__])


def _write(path: Path, record: dict[str, Any]) -> None:
    with atomic_write(path) as file:
        file.write((json.dumps(record) + "\n").encode())


def _data_file(out: Path, name: str) -> Path:
    return out / "data" / f"{name}.json"


def _drawn_file(out: Path, name: str) -> Path:
    return out / "data" / f"{name}.drawn.json"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _folder_digest(folder: Path) -> list[str]:
    return [_digest(folder / name) for name in RUN_FILES if (folder / name).exists()]


def _source(folder: Path) -> str:
    """In words for the report."""
    return "shipped" if folder.parent == SHIPPED else str(folder)


def _begin_worker() -> None:
    """Ctrl-C reaches all processes of a terminal; it is for the parent to hear, which then ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
