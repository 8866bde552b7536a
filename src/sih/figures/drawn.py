"""Figures on disk, made from kept data: drawn again only where the data or the source of the drawing has changed.

OUT/figures/NAME.pdf .svg .png
OUT/data/NAME.drawn.json        what they were drawn from, and their digests
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib

from sih.figures.gallery import FIGURES
from sih.files import read_json, write_json
from sih.results import sources, style
from sih.results.cache import Kept, digest_of, find, keep
from sih.results.experiment import Experiment
from sih.results.processes import on_all_cores
from sih.runs.run_store import RunStore


@dataclass(frozen=True)
class Drawn:
    """Holds an experiment's data and the files of its figure, none where there is no data. `new` if drawn just now."""

    kept: Kept[Any]
    figures: tuple[Path, ...] = ()
    new: bool = False

    @property
    def png(self) -> Path | None:
        """Find the figure as a PNG."""
        return next((path for path in self.figures if path.suffix == ".png"), None)


def make(experiment: Experiment[Any, Any], out: Path, store: RunStore) -> Drawn:
    """Keep the experiment's data and draw its figure under `out`, where they are not there already and right."""
    kept = keep(experiment, out, store)
    if kept.data is None:
        return Drawn(kept)
    files = _found(kept, out)
    if files is not None:
        return Drawn(kept, files)
    files = tuple(
        style.save(FIGURES[experiment.name](kept.data), out / "figures" / experiment.name)
    )
    write_json(_record_file(kept, out), _record(kept, out, files))
    return Drawn(kept, files, new=True)


def is_made(experiment: Experiment[Any, Any], out: Path, store: RunStore) -> bool:
    """Say whether `make` would find everything there."""
    kept = find(experiment, out, store)
    return kept is not None and (kept.data is None or _found(kept, out) is not None)


def make_all(
    experiments: Sequence[Experiment[Any, Any]], out: Path, store: RunStore, jobs: int | None = None
) -> Iterator[Drawn]:
    """Yield each as soon as it is there: what is kept at once, the rest from `jobs` processes (a core each)."""
    waiting = []
    for experiment in experiments:
        if is_made(experiment, out, store):
            yield make(experiment, out, store)
        else:
            waiting.append(experiment)
    try:
        yield from on_all_cores(partial(make, out=out, store=store), waiting, jobs)
    except BaseException:
        for leftover in out.glob(
            "*/.*.part"
        ):  # of a file that a process was writing when it was ended
            leftover.unlink()
        raise


def drawing_key(kept: Kept[Any]) -> str:
    """Digest all that a figure depends on: the data, and the source that draws it."""
    source = sources.digest(FIGURES[kept.experiment.name].__module__)
    return digest_of([kept.digest, source, matplotlib.__version__])


def _found(kept: Kept[Any], out: Path) -> tuple[Path, ...] | None:
    """Find the figure's files, or return None if they show something else or have been touched since."""
    try:
        record = read_json(_record_file(kept, out))
        files = tuple(out / name for name in record["files"])
        return files if record == _record(kept, out, files) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _record(kept: Kept[Any], out: Path, files: tuple[Path, ...]) -> dict[str, Any]:
    digests = {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    return {"key": drawing_key(kept), "files": digests}


def _record_file(kept: Kept[Any], out: Path) -> Path:
    return out / "data" / f"{kept.experiment.name}.drawn.json"
