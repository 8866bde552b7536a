"""Reading files so that whatever goes wrong is one line that names the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import BadZipFile

WRONG = (OSError, ValueError, LookupError, TypeError, AttributeError, EOFError, RecursionError, BadZipFile)


class FileError(ValueError):
    """Says which file holds something else than it should, and why."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class MissingFileError(FileError, FileNotFoundError):
    """Says which file is not there."""


@contextmanager
def reading(path: str | Path, otherwise: str, *errors: type[Exception], missing: str | None = None) -> Iterator[None]:
    """Turn an error within the block into a ValueError of one line: "`path` `otherwise`: why", or `missing`.

    `errors` are those of a library, besides the usual ones of unreadable files and wrong content. Blocks may nest: the
    outer one says in its own words what the file should have held.

    >>> with reading("a.json", "is no run"):
    ...     raise KeyError("steps")
    Traceback (most recent call last):
    sih.files.reading.FileError: a.json is no run: 'steps'
    """
    try:
        yield
    except FileNotFoundError:
        raise MissingFileError(missing or f"there is no file {path}") from None
    except WRONG + errors as error:
        reason = error.reason if isinstance(error, FileError) else next(iter(str(error).splitlines()), "")
        reason = reason or type(error).__name__
        raise FileError(f"{path} {otherwise}: {reason}", reason) from error
