"""Damaged files: every reader, on every kind of file, with bits flipped, ends cut off and values of another kind."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from torture.trial import Trial, forked

Reader = Callable[[Path], Any]
ODD: list[Any] = [None, [], {}, "", "x", True, -1, 0, 1e308, 10**30, [[]], [1, [2]], {"a": 1}, "é" * 99, [None] * 3]


def _model(path: Path) -> Any:
    import sih

    model = sih.load(path.parent)
    return [weight.tolist() for weight in model.parameters()]


def _verified(path: Path) -> Any:
    import sih

    return sih.verify(sih.load(path.parent)).ok


def _run(path: Path) -> Any:
    from sih.runs.run import Run

    run = Run(path.parent)
    return run.config, run.environment, run.metrics, run.evaluations, run.model


def _resumed(path: Path) -> Any:
    from support.small_runs import SHORT, make

    make(path.parent, SHORT)
    return (path.parent / "weights.safetensors").read_bytes()


def _matrix(path: Path) -> Any:
    from sih.markov import load_transition_matrix

    return load_transition_matrix(path)


def _sample(path: Path) -> Any:
    from sih.task.sample_file import load_sample

    return load_sample(path)


def _search(path: Path) -> Any:
    from sih.theory.search import SearchState

    return SearchState.load(path.parent)


def _estimates(path: Path) -> Any:
    from sih.theory.monte_carlo import MonteCarlo, load_estimates

    return load_estimates(path.parent, MonteCarlo(3, 2, (1, 2), 4, 8))


def _grid(path: Path) -> Any:
    from sih.sweep.grid import read_grid

    return read_grid(path)


READERS: list[tuple[str, Reader]] = [
    *(("matrix.npy", _matrix), ("matrix.csv", _matrix), ("sample.npz", _sample), ("sample.csv", _sample)),
    *(("circuit/config.json", _model), ("circuit/weights.safetensors", _model), ("circuit/notes.json", _verified)),
    *(("run/config.json", _run), ("run/metrics.jsonl", _run), ("run/environment.json", _run)),
    *(("run/weights.safetensors", _run), ("half/checkpoint.safetensors", _resumed), ("half/metrics.jsonl", _resumed)),
    *(("half/environment.json", _resumed), ("search/search.json", _search), ("mc/estimates.npz", _estimates)),
    ("grid.toml", _grid),
]
SAME = ("circuit/weights.safetensors", "run/weights.safetensors", "half/checkpoint.safetensors")
"""Files with a checksum: what is read from them at all is what was written."""


@cache
def originals() -> Path:
    """Make one good file of each kind, once."""
    import tempfile

    place = Path(tempfile.mkdtemp(prefix="torture-originals-"))
    here = place / "here"
    here.mkdir()
    made = forked(lambda: _write(here), here)
    assert made.code == 0, made.err
    return here


def _write(here: Path) -> None:
    import numpy as np
    from support.small_runs import make

    import sih
    from sih.cli import main
    from sih.task.sample_file import save_sample
    from sih.theory.monte_carlo import MonteCarlo, estimates, save_estimates

    P = sih.random_transition_matrix(3, rng=0)
    np.save(here / "matrix.npy", P.numpy())
    np.savetxt(here / "matrix.csv", P.numpy(), delimiter=",")
    task = sih.Task(P, (1, 2), 12)
    for name in ("sample.npz", "sample.csv"):
        save_sample(here / name, sih.sample(task, 3, rng=0), task, 0)
    sih.save(sih.construct(task), here / "circuit")
    make(here / "run")
    make(here / "half", stop_after=9)
    main(
        [
            "claim",
            "search",
            "--states",
            "3",
            "--sizes",
            "3",
            "--descents",
            "2",
            "--starts",
            "2",
            "--steps",
            "2",
            "--out",
            "search",
        ]
    )
    check = MonteCarlo(3, 2, (1, 2), 4, 8)
    save_estimates(here / "mc", check, list(estimates(check)))
    (here / "grid.toml").write_text("[base]\nlags = [1, 2]\nsteps = 2\n[grid]\nseed = [0, 1]\n")


def trials(share: float) -> Iterator[Trial]:
    for number in range(int(1500 * share)):
        name, read = READERS[number % len(READERS)]
        yield lambda draw, folder, name=name, read=read: _damaged(draw, folder, name, read)  # type: ignore[misc]


def _damaged(draw: random.Random, folder: Path, name: str, read: Reader) -> str:
    shutil.copytree(originals(), folder, dirs_exist_ok=True)
    path = folder / name
    before = path.read_bytes()
    path.write_bytes(damaged(before, path.suffix, draw))
    if path.read_bytes() == before:
        return ""
    found = forked(lambda: _read(path, read, before if name in SAME else None), folder)
    return f"{name}: {found.fault}" if found.fault else ""


def _read(path: Path, read: Reader, original: bytes | None) -> int:
    """Read a file: 0 if that goes well, 2 with one line if the file is refused."""
    try:
        found = read(path)
    except ValueError as error:
        print(str(error), file=__import__("sys").stderr)
        return 2
    if original is not None:
        path.write_bytes(original)
        if path.name == "checkpoint.safetensors":
            shutil.rmtree(path.parent)
            shutil.copytree(originals() / "half", path.parent)
        again = read(path)
        assert str(again) == str(found), "silently wrong: something else was read than was written"
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
        return draw.choice((b"", b"\0" * 64, b"[]", b"1", b"{}", b"[" * 5000, b"PK\x03\x04", b"\x93NUMPY", b"\xff\xfe"))
    if kind in (".json", ".jsonl"):
        lines = content.decode().split("\n") if kind == ".jsonl" else [content.decode()]
        place = draw.randrange(max(1, len(lines) - 1))
        lines[place] = json.dumps(_odd(json.loads(lines[place]), draw))
        return "\n".join(lines).encode()
    return content.replace(*draw.choice(((b"0", b"9"), (b",", b";"), (b"1", b"-1"), (b"\n", b"\r"), (b"a", b"\0"))))


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
