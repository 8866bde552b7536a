"""Samples on disk: tokens together with the task and seed they came from, as `.npz` or `.csv`.

A `.csv` file opens with one comment line that holds the task and the seed as JSON, then has a sequence a line: its
lag, then its tokens. A file of somebody else's tokens, without that line and without lags, can be read too.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sih.files import atomic_write
from sih.task import Batch, Task

SUFFIXES = (".npz", ".csv")
_MARK = "# sih sample "


@dataclass(frozen=True, eq=False)
class Sample:
    """What a file holds: tokens always, and what else is known about them."""

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, " batch"] | None = None
    task: Task | None = None
    seed: int | None = None


def check_suffix(path: Path) -> Path:
    """`path`, if its ending says a format we write; a ValueError otherwise."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"the file's ending says its format, .npz or .csv, e.g. sample.npz; got {path}")
    return path


def save_sample(path: str | Path, batch: Batch, task: Task, seed: int) -> None:
    """Write the batch with its task and seed; the ending chooses the format."""
    path = check_suffix(Path(path))
    with atomic_write(path) as file:
        if path.suffix == ".npz":
            meta = {name: np.asarray(value) for name, value in task.to_dict().items() if name != "lags"}
            np.savez(
                file,
                tokens=batch.tokens.cpu().numpy(),
                lags=batch.lags.cpu().numpy(),
                task_lags=np.asarray(task.lags),
                seed=np.asarray(seed),
                **meta,  # type: ignore[arg-type]  # names of arrays, not savez's own options
            )
        else:
            file.write(f"{_MARK}{json.dumps({**task.to_dict(), 'seed': seed})}\n".encode())
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(["lag", *(f"x{i}" for i in range(task.length))])
            writer.writerows(np.column_stack([batch.lags.cpu().numpy(), batch.tokens.cpu().numpy()]).tolist())
            text.flush()
            text.detach()


def load_sample(path: str | Path) -> Sample:
    """Read what `save_sample` wrote, or a table of whole numbers, a sequence a row; ValueError for anything else."""
    path = check_suffix(Path(path))
    try:
        return _load_npz(path) if path.suffix == ".npz" else _load_csv(path)
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}") from None
    except (OSError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"{path} holds no sample: {reason}") from error


def _load_npz(path: Path) -> Sample:
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        if not isinstance(arrays, np.lib.npyio.NpzFile) or "tokens" not in arrays:
            raise ValueError("it has no array named 'tokens'")
        tokens = _tokens(arrays["tokens"])
        if "task_lags" not in arrays:
            return Sample(tokens)
        task = Task(arrays["P"], arrays["task_lags"].tolist(), int(arrays["length"]), arrays["lag_prior"])
        return Sample(tokens, torch.from_numpy(arrays["lags"]).long(), task, int(arrays["seed"]))


def _load_csv(path: Path) -> Sample:
    with path.open(encoding="utf-8") as file:
        first = file.readline()
        if not first.startswith(_MARK):
            file.seek(0)
            return Sample(_tokens(np.loadtxt(file, delimiter=",", dtype=np.int64, ndmin=2)))
        meta = json.loads(first.removeprefix(_MARK))
        seed = int(meta.pop("seed"))
        file.readline()
        table = _tokens(np.loadtxt(file, delimiter=",", dtype=np.int64, ndmin=2))
        return Sample(table[:, 1:].contiguous(), table[:, 0].contiguous(), Task(**meta), seed)


def _tokens(array: np.ndarray) -> Int[Tensor, "batch time"]:
    if array.ndim != 2 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"tokens are a table of whole numbers, a sequence a row; found {array.dtype} {array.shape}")
    return torch.from_numpy(array.astype(np.int64))
