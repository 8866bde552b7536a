"""Reading files so that whatever goes wrong is one line that names the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class FileError(ValueError):
    """Says which file holds something else than it should, and why."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class MissingFileError(FileError, FileNotFoundError):
    """Says which file is not there."""


@contextmanager
def reading(path: str | Path, otherwise: str, *, missing: str | None = None) -> Iterator[None]:
    """Turn an error within the block into a ValueError of one line: "`path` `otherwise`: why", or `missing`.

    Whatever a library raises over a damaged file is such an error. Blocks may nest: the outer one says in its own words
    what the file should have held.

    >>> with reading("a.json", "is no run"):
    ...     raise KeyError("steps")
    Traceback (most recent call last):
    sih.base.files.reading.FileError: a.json is no run: 'steps'
    """
    try:
        yield
    except FileNotFoundError:
        raise MissingFileError(missing or f"there is no file {path}") from None
    except Exception as error:
        reason = (
            error.reason
            if isinstance(error, FileError)
            else next(iter(str(error).splitlines()), "")
        )
        reason = reason or type(error).__name__
        raise FileError(f"{path} {otherwise}: {reason}", reason) from error


def check_entries(
    value: Any, kinds: Mapping[str, type | tuple[type, ...]], needed: tuple[str, ...] = ()
) -> None:
    """Raise a ValueError unless the value is an object whose entries, where it has them, are of these kinds.

    >>> check_entries({"step": "one"}, {"step": int})
    Traceback (most recent call last):
    ValueError: step must be int; got 'one'
    """
    if not isinstance(value, dict):
        raise ValueError(f"it must hold a JSON object; got {type(value).__name__}")
    for name, kind in kinds.items():
        if name not in value and name in needed:
            raise ValueError(f"{name} is missing")
        if name in value and (not isinstance(value[name], kind) or isinstance(value[name], bool)):
            one = kind if isinstance(kind, tuple) else (kind,)
            raise ValueError(
                f"{name} must be {' or '.join(each.__name__ for each in one)}; got {value[name]!r:.60}"
            )
