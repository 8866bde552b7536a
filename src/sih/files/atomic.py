"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at `path` all at once, when the block ends well, and not at all otherwise.

    The bytes go to a neighbour in the same folder, are flushed to the disk, and take the name in one step.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with atomic_write(target) as file:
    ...     _ = file.write(b"1 2 3")
    >>> target.read_bytes()
    b'1 2 3'
    """
    path = Path(path)
    part = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = part.open("xb")
    except OSError as error:
        raise ValueError(f"cannot write to {path}: {error.strerror or error}") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.is_dir():
            raise ValueError(f"cannot write to {path}: it is a folder")
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
