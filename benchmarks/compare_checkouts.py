"""Whether two checkouts compute the same, on one machine and one path (bytes differ from machine to machine).

    python -m benchmarks.compare_checkouts training OLD NEW     trains small configurations with each checkout's source:
                                                                the same bytes of weights and metrics?
    python -m benchmarks.compare_checkouts numbers OLD NEW [NAME ...]
                                                                two folders made by `make run`: the same numbers?
                                                                NAME are experiments that are left out
    python -m benchmarks.compare_checkouts circuits OLD NEW [STEP]
                                                                the same circuits? (compare_circuits.py)

Numbers of `report.json` and of each experiment's data, `data/NAME.json` with `data/NAME.npz`, are the same to 12
digits, or to 1e-14 where they are smaller. They may move within the data and be joined by whole numbers (a field that
was a label before), none may be lost; keys and digests are left out. Tables (`data/*.csv`) have the same cells, column
by column, whatever the columns are called. It exits with 1 if anything differs.
"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import compare_circuits

SMALL = "--lags 1 2 --states 3 --length 12 --steps 20 --batch 5 --evaluate-every 8 --held-out 7 --threads 1 --seed 3"
STANDARD = "--model standard --heads 1 2 1 --dim 24 --qk-dim 4"
TABLES = "--model disentangled --heads 1 2 1 --qk-dim 4"
SCHEDULED = "--schedule cosine --warmup 4 --betas 0.9 0.99 --learning-rate 0.01"
HARMONIC = f"--init harmonic --max-period 3 {SCHEDULED} --held 6 --shorter 5 6 11 8"
CASES = {
    "standard, uniform": STANDARD,
    "standard, normal, MLP": f"{STANDARD} --init normal --mlp-dim 5 --concentration 0.5 --matrix-seed 4",
    "standard, harmonic": f"{STANDARD} {HARMONIC}",
    "standard, harmonic, nothing frozen": f"{STANDARD} --init harmonic --max-period 4 --shorter 9 7",
    "standard, shorter sequences": f"{STANDARD} --shorter 9 7",
    "disentangled, uniform": f"{TABLES} {SCHEDULED} --stored float16",
    "disentangled, harmonic": f"{TABLES} {HARMONIC}",
    "disentangled, harmonic, two layers": f"{TABLES} --heads 2 1 --init harmonic --max-period 2 --held 3",
    "disentangled, shorter sequences": f"{TABLES} --shorter 9 7 --held-out 70",
    "disentangled, float16": f"{TABLES} --stored float16 --lag-prior 0.25 0.75",
    "standard, SOAP": f"{STANDARD} --optimiser soap --matrix-law uniform",
    "standard, a matrix for each sequence": f"{STANDARD} --fresh --concentration 0.5",
    "standard, lags that switch": f"{STANDARD} --switch-rate 0.1",
    "standard, a prior": f"{STANDARD} --lag-prior 0.25 0.75 --stored float16",
    "standard, by distributions": f"{STANDARD} --target distribution --init gpt2",
    "relative": "--model relative --heads 1 2 1 --dim 24 --qk-dim 4 --reach 4",
    "relative, start token": "--model relative --heads 1 2 1 --dim 24 --qk-dim 4 --start --offsets both none keys",
    "preset auto": f"--preset auto {STANDARD} --dim 40 --length 40",
    "preset auto, disentangled": f"--preset auto {TABLES} --length 40",
    "preset harmonic": f"--preset harmonic {STANDARD} --dim 40",
    "preset harmonic, disentangled": f"--preset harmonic {TABLES} --length 40",
    "preset paper": f"--preset paper {STANDARD}",
    "preset paper-disentangled": "--preset paper-disentangled --heads 1 1 1",
}
"""Flags of `sih train`; where two say the same, the later one wins."""
RUN = "import json, sys; from sih.cli import main; sys.exit(max(main(words) for words in json.load(sys.stdin)))"


def main(what: str, old: str, new: str, *more: str) -> int:
    ways: dict[str, Callable[..., Iterator[str]]] = {
        "training": training,
        "numbers": numbers,
        "circuits": circuits,
    }
    differences = list(ways[what](Path(old), Path(new), *more))
    print(
        "\n".join(
            [*differences, f"{what} of {old} and {new}: {len(differences) or 'no'} differences"]
        )
    )
    return 1 if differences else 0


def circuits(old: Path, new: Path, step: str = "1") -> Iterator[str]:
    """Compare circuits of every STEP-th lag set."""
    return compare_circuits.compare(old, new, int(step))


def training(old: Path, new: Path) -> Iterator[str]:
    """Train every case with both checkouts and name the files that differ."""
    with tempfile.TemporaryDirectory() as folder:
        outs = [Path(folder) / name for name in ("old", "new")]
        for checkout, out in zip((old, new), outs, strict=True):
            _train_all(checkout, out)
        for number, name in enumerate(CASES):
            for file in ("weights.safetensors", "metrics.jsonl"):
                if len({(out / str(number) / file).read_bytes() for out in outs}) > 1:
                    yield f"{name}: {file} differs"


def _train_all(checkout: Path, out: Path) -> None:
    commands = [
        ["train", *_flags(f"{SMALL} {words}"), "--out", str(out / str(n))]
        for n, words in enumerate(CASES.values())
    ]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps(commands),
        text=True,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _flags(words: str) -> list[str]:
    groups = {group.split()[0]: group.split()[1:] for group in words.split("--")[1:]}
    return [word for name, values in groups.items() for word in (f"--{name}", *values)]


def numbers(old: Path, new: Path, *without: str) -> Iterator[str]:
    """Compare the data of every experiment and say what is lost, what is new, and what differs."""
    files = {
        path.relative_to(out)
        for out in (old, new)
        for path in out.glob("data/*")
        if "drawn" not in path.name
    }
    data = {file.with_suffix(".json") for file in files if file.suffix in (".json", ".npz")}
    tables = {file for file in files if file.suffix == ".csv"}
    for file in sorted(
        one for one in data | tables | {Path("report.json")} if one.stem not in without
    ):
        table = file.suffix == ".csv"
        was, now = ((_read_table if table else _read_record)(out / file) for out in (old, new))
        if was is None or now is None:
            yield f"{file}: only in {new if was is None else old}"
        else:
            differences = _compare_tables(was, now) if table else _compare_records(was, now)
            yield from (f"{file}: {line}" for line in differences)


def _read_record(path: Path) -> Any:
    """Return what a .json file holds, or a list of it and of the arrays beside it, None where there is neither."""
    record, arrays = (
        json.loads(path.read_bytes()) if path.exists() else None,
        path.with_suffix(".npz"),
    )
    if not arrays.exists():
        return record
    with np.load(arrays) as found:
        return [record, *(found[name].ravel().tolist() for name in sorted(found))]


def _compare_records(old: Any, new: Any) -> Iterator[str]:
    ours, theirs = (sorted(_numbers(record)) for record in (new, old))
    lost, extra = _unmatched(theirs, ours)
    extra = [value for value in extra if not float(value).is_integer()]
    if lost or extra:
        yield f"{len(lost)} of {len(theirs)} numbers are lost {lost[:4]}, {len(extra)} are new {extra[:4]}"
    was, now = (
        {one["id"]: one["verdict"] for one in record if _is_finding(one)} for record in (old, new)
    )
    changed = [name for name in {**was, **now} if was.get(name) != now.get(name)]
    yield from (f"verdict on {name} was {was.get(name)} and is {now.get(name)}" for name in changed)


def _is_finding(one: object) -> bool:
    return isinstance(one, dict) and {"id", "verdict"} <= one.keys()


def _numbers(record: Any) -> Iterator[float]:
    if isinstance(record, dict):
        for key, value in record.items():
            if key not in ("key", "digest", "config", "models"):
                yield from _numbers(value)
    elif isinstance(record, list):
        for value in record:
            yield from _numbers(value)
    elif isinstance(record, int | float) and not isinstance(record, bool) and math.isfinite(record):
        yield record


def _unmatched(old: list[float], new: list[float]) -> tuple[list[float], list[float]]:
    """The numbers of two sorted lists that have no partner in the other."""
    lost, extra, i, j = list[float](), list[float](), 0, 0
    while i < len(old) and j < len(new):
        if math.isclose(old[i], new[j], rel_tol=1e-12, abs_tol=1e-14):
            i, j = i + 1, j + 1
        elif old[i] < new[j]:
            lost.append(old[i])
            i += 1
        else:
            extra.append(new[j])
            j += 1
    return lost + old[i:], extra + new[j:]


def _read_table(path: Path) -> list[list[str]] | None:
    if not path.exists():
        return None
    with path.open(newline="") as file:
        return list(csv.reader(file))[1:]


def _compare_tables(old: list[list[str]], new: list[list[str]]) -> Iterator[str]:
    for row, (ours, theirs) in enumerate(zip(new, old, strict=False), 1):
        if ours != theirs:
            yield f"row {row} was {theirs} and is {ours}"
    if len(old) != len(new):
        yield f"had {len(old)} rows and has {len(new)}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
