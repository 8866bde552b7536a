"""Damaged files: every reader, on every kind of file, with bits flipped, ends cut off and values of another kind.

`KINDS` has an entry for each kind of file or folder: how a good one is made, and what reads each of its files.
"""

from __future__ import annotations

import json
import multiprocessing
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from torture.trial import Trial, command, forked, kept

Reader = Callable[[Path], Any]
ODD: list[Any] = [
    None,
    [],
    {},
    "",
    "x",
    True,
    -1,
    0,
    1e308,
    10**30,
    [[]],
    [1, [2]],
    {"a": 1},
    "é" * 99,
    [None] * 3,
]
GRID = "[base]\nlags = [1, 2]\nstates = 3\nlength = 12\nheads = [1, 2]\ndim = 8\nqk_dim = 4\nsteps = 3\nbatch = 5\n"
GRID += "evaluate_every = 3\nheld_out = 7\n[grid]\nseed = [0, 1]\n"


@dataclass(frozen=True)
class Kind:
    """Makes a good file or folder of its name, and reads each file in it.

    `same` are those that are never read as something else than was written: they have a checksum, or are made anew.
    """

    name: str
    make: Callable[[Path], Any]
    readers: Mapping[str, Reader]
    same: tuple[str, ...] = ()


def sweep(grid: Path, out: Path) -> int:
    """Sweep with workers that are forks of this process, and have torch loaded, instead of a new server's."""
    context = multiprocessing.get_context("fork")
    multiprocessing.get_context = lambda method=None: context  # type: ignore[assignment]
    return command("sweep", str(grid), "--out", str(out), "--jobs", "1")()


def _matrix() -> Any:
    import sih

    return sih.random_transition_matrix(3, rng=0)


def _task() -> Any:
    import sih

    return sih.Task(_matrix(), (1, 2), 12)


def _make_matrix(path: Path) -> None:
    import numpy as np

    np.save(path, _matrix().numpy()) if path.suffix == ".npy" else np.savetxt(
        path, _matrix().numpy(), delimiter=","
    )


def _read_matrix(path: Path) -> Any:
    from sih.task.matrices import load_transition_matrix

    return load_transition_matrix(path)


def _make_sample(path: Path) -> None:
    import sih
    from sih.task.sample_file import save_sample

    save_sample(path, sih.sample(_task(), 3, rng=0), _task(), 0)


def _read_sample(path: Path) -> Any:
    from sih.task.sample_file import load_sample

    return load_sample(path)


def _make_circuit(path: Path) -> None:
    import sih

    sih.save(sih.construct(_task()), path)


def _make_parents_circuit(path: Path) -> None:
    import sih

    task = sih.ParentsTask(_matrix(), sih.random_parents(2, 12, rng=0), 12)
    sih.save(sih.construct_parents(task), path)


def _read_model(path: Path) -> Any:
    import sih

    return [weight.tolist() for weight in sih.load(path.parent).parameters()]


def _verified(path: Path) -> Any:
    import sih

    return sih.verify(sih.load(path.parent)).ok


def _make_run(path: Path, stop_after: int | None = None) -> None:
    from support.small_runs import SHORT

    from sih.training.runs.run_writer import RunWriter

    writer = RunWriter(SHORT, path, threads=1, keep_every=8)
    for step in writer:
        if step.step == stop_after:
            writer.save()
            break


def _read_run(path: Path) -> Any:
    from sih.training.runs.run import Run

    run = Run(path.parent)
    return (
        run.config,
        run.environment,
        run.metrics,
        run.evaluations,
        [w.tolist() for w in run.model.parameters()],
    )


def _read_kept(path: Path) -> Any:
    from sih.training.runs.run import Run

    return [weight.tolist() for weight in Run(path.parents[1]).model_at(8).parameters()]


def _resume(path: Path) -> Any:
    _make_run(path.parent)
    return (path.parent / "weights.safetensors").read_bytes()


def _make_search(path: Path) -> None:
    words = "claim search --states 3 --sizes 3 --descents 2 --starts 2 --steps 2 --out"
    assert command(*words.split(), str(path))() == 0


def _read_search(path: Path) -> Any:
    from sih.claim.search import SearchState

    return SearchState.load(path.parent)


def _make_estimates(path: Path) -> None:
    from sih.claim.monte_carlo import estimates, save_estimates

    save_estimates(path, _monte_carlo(), list(estimates(_monte_carlo())))


def _monte_carlo() -> Any:
    from sih.claim.monte_carlo import MonteCarlo

    return MonteCarlo(3, 2, (1, 2), 4, 8)


def _read_estimates(path: Path) -> Any:
    from sih.claim.monte_carlo import load_estimates

    return load_estimates(path.parent, _monte_carlo())


def _read_grid(path: Path) -> Any:
    from sih.beyond.sweep.grid import read_grid

    return read_grid(path)


def _make_sweep(path: Path) -> None:
    """Make a sweep of two runs of which one is finished, in a folder whose name a table can have."""
    path.mkdir()
    (path / "grid.toml").write_text(GRID)
    (path / "half.toml").write_text(GRID.replace("[0, 1]", "[0]"))
    assert sweep(path / "half.toml", path / "out") == 0
    next((path / "out").glob("*/")).rename(path / "run")


def _read_sweep(path: Path) -> Any:
    from sih.beyond.sweep.grid import read_grid

    out = path.parents[1] / "out" if path.parent.name == "run" else path.parent
    (out.parent / "run").rename(out / next(iter(read_grid(out.parent / "grid.toml").runs)))
    sys.exit(sweep(out.parent / "grid.toml", out))


def _make_lens(path: Path) -> None:
    import sih
    from sih.beyond.transformer_lens.lens import export_transformer_lens

    export_transformer_lens(sih.construct(_task()), path)


def _read_lens(path: Path) -> Any:
    from sih.beyond.transformer_lens.lens import from_transformer_lens

    return [weight.tolist() for weight in from_transformer_lens(path.parent).parameters()]


def _make_known(path: Path) -> None:
    from sih.beyond.discovery.ground_truth import CIRCUITS, known_circuit, save_circuits

    save_circuits(path, [known_circuit(next(iter(CIRCUITS)), 0)])
    next(path.glob("*/")).rename(path / "it")


def _read_known(path: Path) -> Any:
    from sih.beyond.discovery.ground_truth import load_circuits

    return load_circuits(path.parents[1])["it"].edges


def _experiment() -> Any:
    import dataclasses

    from sih.paper import heads as head_counts

    return dataclasses.replace(
        head_counts.EXPERIMENT, config=head_counts.HeadCountsConfig(largest=4)
    )


def _make_figure(path: Path) -> Any:
    from sih.results.figure import shown
    from sih.results.pictures import make
    from sih.training.runs.run_store import RunStore

    return make(shown(_experiment()), path, RunStore(path / "runs")).result.data


CIRCUIT = {"config.json": _read_model, "weights.safetensors": _read_model, "notes.json": _verified}
KINDS: list[Kind] = [
    *(Kind(name, _make_matrix, {"": _read_matrix}) for name in ("matrix.npy", "matrix.csv")),
    *(Kind(name, _make_sample, {"": _read_sample}) for name in ("sample.npz", "sample.csv")),
    Kind("circuit", _make_circuit, CIRCUIT, same=("weights.safetensors",)),
    Kind("parents-circuit", _make_parents_circuit, CIRCUIT, same=("weights.safetensors",)),
    Kind(
        "run",
        _make_run,
        {
            **dict.fromkeys(
                ("config.json", "metrics.jsonl", "environment.json", "weights.safetensors"),
                _read_run,
            ),
            "kept/step-000008.safetensors": _read_kept,
        },
        same=("weights.safetensors",),
    ),
    Kind(
        "half",
        partial(_make_run, stop_after=9),
        dict.fromkeys(("checkpoint.safetensors", "metrics.jsonl", "environment.json"), _resume),
        same=("checkpoint.safetensors",),
    ),
    Kind("search", _make_search, {"search.json": _read_search}),
    Kind("mc", _make_estimates, {"estimates.npz": _read_estimates}),
    Kind("grid.toml", lambda path: path.write_text(GRID), {"": _read_grid}),
    Kind(
        "sweep",
        _make_sweep,
        dict.fromkeys(
            ("out/results.csv", "run/config.json", "run/metrics.jsonl", "run/weights.safetensors"),
            _read_sweep,
        ),
    ),
    Kind(
        "lens",
        _make_lens,
        dict.fromkeys(("config.json", "weights.safetensors"), _read_lens),
        same=("weights.safetensors",),
    ),
    Kind("known", _make_known, dict.fromkeys(("it/config.json", "it/notes.json"), _read_known)),
    Kind(
        "figure",
        _make_figure,
        dict.fromkeys(
            ("data/heads.json", "data/heads.drawn.json"), lambda path: _make_figure(path.parents[1])
        ),
        same=("data/heads.json", "data/heads.drawn.json"),
    ),
]
READERS = [(kind, name) for kind in KINDS for name in kind.readers]


@cache
def originals() -> Path:
    """Make one good file or folder of each kind, once."""
    here = kept("originals")

    def make() -> None:
        for kind in KINDS:
            kind.make(here / kind.name)

    made = forked(make, here)
    assert made.code == 0, made.err
    return here


def trials(share: float) -> Iterator[Trial]:
    for number in range(int(1500 * share)):
        kind, name = READERS[number % len(READERS)]
        yield partial(_damaged, kind=kind, name=name)


def _damaged(draw: random.Random, folder: Path, kind: Kind, name: str) -> str:
    _copy(kind, folder)
    path = folder / kind.name / name
    before = path.read_bytes()
    path.write_bytes(damaged(before, path.suffix, draw))
    if path.read_bytes() == before:
        return ""
    found = forked(lambda: _read(path, kind, name), folder)
    return f"{kind.name}/{name}: {found.fault}" if found.fault else ""


def _copy(kind: Kind, folder: Path) -> None:
    source, target = originals() / kind.name, folder / kind.name
    shutil.copytree(source, target) if source.is_dir() else shutil.copyfile(source, target)


def _read(path: Path, kind: Kind, name: str) -> int:
    """Read a file: 0 if that goes well, 2 with one line if the file is refused."""
    try:
        found = kind.readers[name](path)
    except ValueError as error:
        print(f"sih: {error}", file=sys.stderr)
        return 2
    if name in kind.same:
        shutil.rmtree(path.parents[len(Path(name).parts) - 1])
        _copy(kind, path.parents[len(Path(name).parts)])
        assert str(kind.readers[name](path)) == str(found), (
            "silently wrong: something else was read than was written"
        )
    return 0


def damaged(content: bytes, kind: str, draw: random.Random) -> bytes:
    """Change a file's content in one of several ways."""
    how, changed = draw.random(), bytearray(content)
    if how < 0.15:
        return content[: draw.randrange(len(content))]
    if how < 0.5:
        for _ in range(draw.choice((1, 1, 1, 4))):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
        return bytes(changed)
    if how < 0.6:
        place = draw.randrange(len(changed))
        changed[place : place + draw.randint(0, 9)] = draw.randbytes(draw.randint(0, 9))
        return bytes(changed)
    if how < 0.7:
        return draw.choice(
            (
                b"",
                b"\0" * 64,
                b"[]",
                b"1",
                b"{}",
                b"[" * 5000,
                b"PK\x03\x04",
                b"\x93NUMPY",
                b"\xff\xfe",
            )
        )
    if kind in (".json", ".jsonl"):
        lines = content.decode().split("\n") if kind == ".jsonl" else [content.decode()]
        place = draw.randrange(max(1, len(lines) - 1))
        lines[place] = json.dumps(_odd(json.loads(lines[place]), draw))
        return "\n".join(lines).encode()
    return content.replace(
        *draw.choice(((b"0", b"9"), (b",", b";"), (b"1", b"-1"), (b"\n", b"\r"), (b"a", b"\0")))
    )


def _odd(value: Any, draw: random.Random) -> Any:
    """Put something odd at one place of a value."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        if draw.random() < 0.15:
            return {name: entry for name, entry in value.items() if name != key}
        return {**value, key: _odd(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.5:
        place = draw.randrange(len(value))
        return [*value[:place], _odd(value[place], draw), *value[place + 1 :]]
    return draw.choice(ODD)
