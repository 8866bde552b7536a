"""Sample files: tokens with their task and seed, as `.npz` or `.csv`.

A `.csv` file opens with one comment line that has the task and the seed as JSON. It
then has one line per sequence: its lag, then its tokens. A file with tokens alone,
without that comment and without lags, can be read too. A lag for each token
(`SwitchingTask`) or a matrix for each sequence (`FreshTask`) needs an `.npz` file.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sih.base.files import read_arrays, read_table, reading, write_arrays, write_rows
from sih.task.batch import Batch
from sih.task.family import LAG_TASKS, LagTask
from sih.task.lags import Task

_MARK = "# sih sample "


@dataclass(frozen=True, eq=False)
class Sample:
    """The content of a sample file: tokens, perhaps lags, matrices, task and seed."""

    tokens: Int[Tensor, "batch time"]
    lags: Int[Tensor, "batch *time"] | None = None
    task: LagTask | None = None
    seed: int | None = None
    P: Float[Tensor, "batch state state"] | None = None
    """The matrix of each sequence, where each has its own."""

    @property
    def batch(self) -> Batch | None:
        """Return the tokens with their hidden variables, or None without them."""
        return None if self.lags is None else Batch(self.tokens, self.lags, self.P)


def check_suffix(path: Path) -> Path:
    """Return `path` if its suffix names a known format, or raise a ValueError."""
    if path.suffix not in (".npz", ".csv"):
        raise ValueError(
            f"the file's ending says its format, .npz or .csv, e.g. sample.npz; got {path}"
        )
    return path


def save_sample(path: str | Path, batch: Batch, task: LagTask, seed: int) -> None:
    """Write the batch with its task and seed, in the format of `path`'s suffix."""
    path = check_suffix(Path(path))
    tokens, lags = batch.tokens.cpu().numpy(), batch.lags.cpu().numpy()
    meta = {**task.to_dict(), "seed": seed}
    kind = type(task).__name__
    if path.suffix == ".npz":
        if kind != "Task":
            meta["kind"] = kind
        if batch.P is not None:
            meta["matrices"] = batch.P.cpu().numpy()
        write_arrays(
            path,
            tokens=tokens,
            lags=lags,
            task_lags=meta.pop("lags"),
            seed=meta.pop("seed"),
            **meta,
        )
        return
    if kind != "Task":
        raise ValueError(
            f"a .csv file has one matrix, and one lag for each sequence; write a {kind}'s as .npz, not {path}"
        )
    header = ["lag", *(f"x{i}" for i in range(task.length))]
    rows = np.column_stack([lags, tokens]).tolist()
    write_rows(path, [header, *rows], comment=f"{_MARK}{json.dumps(meta)}\n")


def load_sample(path: str | Path) -> Sample:
    """Return the content of a sample file, or raise a ValueError.

    It may also be a table of whole numbers with one row per sequence.
    """
    path = check_suffix(Path(path))
    with reading(path, "holds no sample"):
        return _load_npz(path) if path.suffix == ".npz" else _load_csv(path)


def _load_npz(path: Path) -> Sample:
    arrays = read_arrays(path)
    if "tokens" not in arrays:
        raise ValueError("it has no array named 'tokens'")
    tokens = _tokens(arrays["tokens"])
    if "task_lags" not in arrays:
        return Sample(tokens)
    kind = str(arrays.get("kind", "Task"))
    if kind not in LAG_TASKS:
        raise ValueError(f"its task is {kind!r}; there are {', '.join(LAG_TASKS)}")
    given: dict[str, Any] = {name: arrays[name] for name in ("P", "lag_prior") if name in arrays}
    given |= {
        name: arrays[name].item()
        for name in ("num_states", "concentration", "rate", "length")
        if name in arrays
    }
    task = LAG_TASKS[kind](lags=arrays["task_lags"].tolist(), **given)
    matrices = torch.from_numpy(arrays["matrices"]).double() if "matrices" in arrays else None
    return Sample(
        tokens, torch.from_numpy(arrays["lags"]).long(), task, int(arrays["seed"]), matrices
    )


def _load_csv(path: Path) -> Sample:
    with path.open(encoding="utf-8") as file:
        first = file.readline()
    if not first.startswith(_MARK):
        return Sample(_tokens(read_table(path, np.int64)))
    meta = json.loads(first.removeprefix(_MARK))
    seed = int(meta.pop("seed"))
    table = _tokens(read_table(path, np.int64, skip=2))
    return Sample(table[:, 1:].contiguous(), table[:, 0].contiguous(), Task(**meta), seed)


def _tokens(array: np.ndarray) -> Int[Tensor, "batch time"]:
    if array.ndim != 2 or array.size == 0 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"tokens are a table of whole numbers, a sequence a row; found {array.dtype} {array.shape}"
        )
    return torch.from_numpy(array.astype(np.int64))
