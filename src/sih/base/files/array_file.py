"""Arrays in files: `.npy` (one), `.npz` (several, by name) and `.csv` (a table)."""

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sih.base.files.atomic import atomic_write
from sih.base.files.reading import reading


def write_arrays(path: str | Path, **arrays: Any) -> None:
    """Write arrays, numbers and words by name as a `.npz` file, whole or not at all."""
    with atomic_write(path) as file:
        np.savez(file, **arrays)


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """Return the arrays of a `.npz` file by name, or raise a ValueError."""
    with reading(path, "holds no arrays"), Path(path).open("rb") as file:
        arrays = np.load(file, allow_pickle=False)
        if not isinstance(arrays, np.lib.npyio.NpzFile):
            raise ValueError("it is one array without a name")
        return dict(arrays)


def write_rows(path: str | Path, rows: Iterable[Sequence[Any]], comment: str = "") -> None:
    """Write a table as a `.csv` file, whole or not at all.

    The comment comes first, then one line for each row.
    """
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        text.write(comment)
        csv.writer(text, lineterminator="\n").writerows(rows)
        text.detach()


def read_table(path: str | Path, dtype: type = np.float64, *, skip: int = 0) -> np.ndarray:
    """Return the table in a `.npy` file, or in a `.csv` file without `skip` lines."""
    with reading(path, "holds no table of numbers"):
        if Path(path).suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False))
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy's warning that there is no data
            return np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2, skiprows=skip)
