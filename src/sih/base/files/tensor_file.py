"""Tensors by name, with a note, in safetensors files: weights and checkpoints.

The checksum of a weights file is in a file beside it, which `sha256sum -c` reads. A
checkpoint has its own in its note. Older files without a checksum can be read, too.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from sih.base.files.atomic import atomic_write
from sih.base.files.reading import reading

DAMAGED = "is damaged or no safetensors file"


def tensor_bytes(tensors: Mapping[str, Tensor], note: dict[str, str]) -> bytes:
    """Return tensors and a note as the bytes of a safetensors file.

    Equal tensors and notes give equal bytes if the note has one entry. Several entries
    are written in an order that changes from process to process.
    """
    from safetensors.torch import save

    return save(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        metadata=note,
    )


def write_summed(path: str | Path, content: bytes) -> None:
    """Write the file's checksum beside it, then the file."""
    with atomic_write(sum_file(path)) as file:
        file.write(f"{hashlib.sha256(content).hexdigest()}  {Path(path).name}\n".encode())
    with atomic_write(path) as file:
        file.write(content)


def sum_file(path: str | Path) -> Path:
    """Return the file name for a file's checksum."""
    return Path(path).with_suffix(".sha256")


def check_sum(path: str | Path) -> None:
    """Raise a ValueError if a file does not match its checksum, if there is one."""
    with reading(path, DAMAGED):
        content = Path(path).read_bytes()
        if sum_file(path).exists() and sum_file(path).read_text().split()[:1] != [
            hashlib.sha256(content).hexdigest()
        ]:
            raise ValueError(f"its checksum is not the one in {sum_file(path).name}")


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return a safetensors file's tensors and note, or raise a ValueError."""
    from safetensors import safe_open

    check_sum(path)
    with reading(path, DAMAGED), safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118 (no mapping)


def read_header(path: str | Path) -> tuple[dict[str, str], dict[str, tuple[int, ...]]]:
    """Return a safetensors file's note and its tensors' shapes.

    Raises a ValueError that names the file if it is invalid.
    """
    from safetensors import safe_open

    with reading(path, DAMAGED), safe_open(path, framework="pt") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
        return file.metadata() or {}, shapes


def digest_of_tensors(tensors: Mapping[str, Tensor], note: Any) -> str:
    """Return a digest of tensors by name and of their note."""
    whole = hashlib.sha256(repr(note).encode())
    for name, tensor in sorted(tensors.items()):
        whole.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        whole.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()
