"""Tensors by name in safetensors files, with a note: what `weights.safetensors` and checkpoints are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from sih.files.reading import reading

DAMAGED = "is damaged or no safetensors file"


def tensor_bytes(tensors: Mapping[str, Tensor], note: dict[str, str]) -> bytes:
    """Make the content of a safetensors file.

    Equal tensors and notes give equal bytes if the note has one entry: several are written in an order that changes
    from process to process.
    """
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata=note)


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a safetensors file's tensors and its note, or raise a ValueError that names the file."""
    from safetensors import SafetensorError, safe_open

    with reading(path, DAMAGED, SafetensorError), safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 (no mapping)


def read_note(path: str | Path) -> dict[str, str]:
    """Read a safetensors file's note alone, or raise a ValueError that names the file."""
    from safetensors import SafetensorError, safe_open

    with reading(path, DAMAGED, SafetensorError), safe_open(path, framework="pt") as file:
        return file.metadata() or {}
