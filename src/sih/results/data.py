"""Data on disk: one writer and one reader for every experiment.

    NAME.json    the configuration and the data, with a name in place of each array
    NAME.npz     the arrays by name, for `numpy.load`: data.panels.0.kl.ML.mean

An array keeps every digit, its type and its shape.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sih.base.files import atomic_write, read_json, reading, write_json
from sih.base.record import read
from sih.results.experiment import Data

ARRAY = "array"
"""The key of the JSON object that represents an array."""
Arrays = dict[str, np.ndarray]


def write_data(stem: Path, data: Any, about: Mapping[str, Any]) -> None:
    """Write `stem`.npz and `stem`.json, with `about` beside the data."""
    plain, arrays = packed(data)
    content = array_bytes(arrays)
    with atomic_write(arrays_file(stem)) as file:
        file.write(content)
    digest = digest_of(plain, content)
    write_json(data_file(stem), {**about, "digest": digest, "data": plain})


def read_data(stem: Path, kind: type[Data]) -> Data:
    """Return the data that `write_data` wrote; raise a ValueError if it is damaged."""
    about = read_about(stem)
    with reading(arrays_file(stem), "holds no arrays"):
        content = arrays_file(stem).read_bytes()
        arrays = dict(np.load(io.BytesIO(content), allow_pickle=False))
    if digest_of(about["data"], content) != about["digest"]:
        raise ValueError(f"{data_file(stem)} and {arrays_file(stem)} are not as they were written")
    return unpacked(kind, about["data"], arrays)


def read_about(stem: Path) -> dict[str, Any]:
    """Return everything in `stem`.json, or raise a ValueError."""
    about = read_json(data_file(stem))
    if not isinstance(about, dict) or not {"key", "digest", "data"} <= about.keys():
        raise ValueError(f"{data_file(stem)} holds no data of an experiment")
    return about


def data_file(stem: Path) -> Path:
    """Return the JSON file. A stem may contain dots."""
    return stem.with_name(f"{stem.name}.json")


def arrays_file(stem: Path) -> Path:
    """Return the NPZ file."""
    return stem.with_name(f"{stem.name}.npz")


def array_bytes(arrays: Arrays) -> bytes:
    """Return the arrays as the bytes of a NumPy file, always the same."""
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def packed(data: Any) -> tuple[Any, Arrays]:
    """Return the data as JSON, with a name in place of each array, and the arrays."""
    arrays: Arrays = {}
    return _without_arrays(data, "data", arrays), arrays


def unpacked(kind: type[Data], plain: Any, arrays: Mapping[str, np.ndarray]) -> Data:
    """Return the data of this type from the two parts that `packed` returned."""
    return read(kind, _with_arrays(plain, arrays), "data")


def as_lists(value: Any) -> Any:
    """Return the data as plain JSON, with tensors as lists, for printing.

    >>> as_lists({"kl": torch.tensor([0.5, 0.25]), "lags": (1, 2)})
    {'kl': [0.5, 0.25], 'lags': [1, 2]}
    """
    plain, arrays = packed(value)
    return _with_arrays(plain, {name: array.tolist() for name, array in arrays.items()})


def digest_of(plain: Any, content: bytes = b"") -> str:
    """Return the digest of plain values, and of bytes that belong to them."""
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode() + content).hexdigest()


def _without_arrays(value: Any, place: str, arrays: Arrays) -> Any:
    """Return the value as JSON, and put its tensors into `arrays` by place."""
    if isinstance(value, Tensor):
        arrays[place] = value.numpy()
        return {ARRAY: place}
    if dataclasses.is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        entries = value.items()
        return {name: _without_arrays(entry, f"{place}.{name}", arrays) for name, entry in entries}
    if isinstance(value, list | tuple):
        items = enumerate(value)
        return [_without_arrays(item, f"{place}.{n}", arrays) for n, item in items]
    return value


def _with_arrays(value: Any, arrays: Mapping[str, Any]) -> Any:
    """Return JSON data with its tensors, which `_without_arrays` removed."""
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {ARRAY}:
        array = arrays[value[ARRAY]]
        return torch.from_numpy(array) if isinstance(array, np.ndarray) else array
    return {name: _with_arrays(entry, arrays) for name, entry in value.items()}
