"""Reading of files, with any error as one line that names the file."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class FileError(ValueError):
    """A file with an invalid content: its path, and the reason."""

    def __init__(self, text: str, reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist."""


@contextmanager
def reading(path: str | Path, otherwise: str, *, missing: str | None = None) -> Iterator[None]:
    """Turn an error within the block into a one-line ValueError.

    The message is "`path` `otherwise`: reason", or `missing`. Any exception that a
    library raises over a damaged file counts. Blocks may nest: the message is then the
    outer one's.

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
    """Raise a ValueError unless the value is an object with entries of these kinds.

    Entries may be missing, except for those in `needed`.

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
