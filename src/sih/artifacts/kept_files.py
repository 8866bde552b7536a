"""Files made from something, with a record beside them of what: found again only if neither has changed."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from sih.files import read_json, write_json


def record_files(record: Path, key: str, files: Iterable[Path]) -> None:
    """Write down that the files, with the content they have now, were made under this key."""
    out = record.parent.parent  # OUT of OUT/data/NAME.drawn.json
    write_json(record, {"key": key, "files": {path.relative_to(out).as_posix(): _digest(path) for path in files}})


def recorded_files(record: Path, key: str) -> tuple[Path, ...] | None:
    """Find the files of a record, or return None if they were made under another key or have been touched since."""
    try:
        found = read_json(record)
        files = {record.parent.parent / name: digest for name, digest in found["files"].items()}
        untouched = found["key"] == key and all(_digest(path) == digest for path, digest in files.items())
        return tuple(files) if untouched else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
