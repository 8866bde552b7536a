"""Atomic writing of files and folders: a reader never sees half of one.

A file in progress has a name like `.config.json.1f3a09bc.part` and is locked by its
writer. The system releases the lock of a process that was killed. The next writer in
the folder then removes this leftover.
"""

import ctypes
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PART = re.compile(r"\..+\.[0-9a-f]{8}\.part")
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that appears at `path` at once, if the block succeeds.

    The bytes go to a neighbour in the same folder, are flushed to the disk, and take
    the name in one step. An error of the system, such as a full disk, is a ValueError.

    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with atomic_write(target) as file:
    ...     _ = file.write(b"1 2 3")
    >>> target.read_bytes()
    b'1 2 3'
    """
    path = Path(path)
    with explained(path):
        if path.is_dir():
            raise ValueError(f"cannot write to {path}: it is a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(path.parent)
        part, file = _new_part(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def atomic_folder(path: str | Path, replaced: Sequence[str]) -> Iterator[Path]:
    """Yield a new folder that appears at `path` at once if the block succeeds.

    In a folder already there, the files `replaced` are removed, with or without new
    ones. Its other files stay. Two folders are swapped in one step where the system
    allows it. Elsewhere files are replaced one after the other.
    """
    path = Path(path).resolve()
    with explained(path):
        if path.exists() and not path.is_dir():
            raise ValueError(f"cannot write to {path}: it is a file, not a folder")
        path.parent.mkdir(parents=True, exist_ok=True)
        stuck = path.exists() and (os.path.ismount(path) or Path.cwd().is_relative_to(path))
        beside = (
            path
            if stuck or (path.exists() and not os.access(path.parent, os.W_OK))
            else path.parent
        )
        remove_leftovers(beside)
        new = beside / f".{path.name}.{secrets.token_hex(4)}.part"
        new.mkdir()
        held = os.open(new, os.O_RDONLY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield new
            if not path.exists():
                new.rename(path)
            elif beside == path or not _exchange(new, path, replaced):
                for name in (*replaced, *os.listdir(new)):
                    (path / name).unlink(missing_ok=True) if not (new / name).exists() else None
                for name in os.listdir(new):
                    os.replace(new / name, path / name)
        except ValueError as error:
            raise ValueError(str(error).replace(str(new), str(path))) from error
        finally:
            os.close(held)
            shutil.rmtree(new, ignore_errors=True)


def remove_leftovers(folder: Path) -> None:
    """Remove unfinished files and folders of processes that were killed."""
    for path in folder.iterdir():
        if is_part(path):
            with suppress(OSError):  # already removed, or locked by its writer
                descriptor = os.open(path, os.O_RDONLY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
                finally:
                    os.close(descriptor)


def is_part(path: Path) -> bool:
    """Return whether a path is the name of an unfinished file."""
    return PART.fullmatch(path.name) is not None


def check_place(path: str | Path) -> None:
    """Raise a ValueError if nothing can be written at `path`.

    Its parent folders need not exist.
    """
    place = Path(path).absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    if place != Path(path).absolute() and not place.is_dir():
        raise ValueError(f"cannot write to {path}: {place} is a file")
    if not os.access(place, os.W_OK):
        raise ValueError(f"cannot write to {path}: no permission to write to {place}")


def _new_part(path: Path) -> tuple[Path, IO[bytes]]:
    while True:
        part = path.parent / f".{path.name}.{secrets.token_hex(4)}.part"
        file = part.open("xb")
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:  # 0 if removed as a leftover before the lock
            return part, file
        file.close()


def _exchange(new: Path, path: Path, replaced: Sequence[str]) -> bool:
    """Swap two folders, after the other files of the old one were added to the new one.

    Returns False if the system cannot.
    """
    try:
        ignored = {*replaced, *os.listdir(new)}
        left_out = lambda at, names: ignored & {*names} if Path(at) == path else set()  # noqa: E731
        shutil.copytree(
            path, new, symlinks=True, ignore=left_out, copy_function=os.link, dirs_exist_ok=True
        )
        libc = ctypes.CDLL(None)
        return (
            int(libc.renameat2(_HERE, os.fsencode(new), _HERE, os.fsencode(path), _EXCHANGE)) == 0
        )
    except (OSError, AttributeError):
        return False


@contextmanager
def explained(path: Path, besides: str = "") -> Iterator[None]:
    """Turn a system error, such as a full disk, into a one-line ValueError."""
    try:
        yield
    except OSError as error:
        raise ValueError(f"cannot write to {path}: {error.strerror or error}{besides}") from error
