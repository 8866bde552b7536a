"""JSON files."""

import json
from pathlib import Path
from typing import Any

from sih.base.files.atomic import atomic_write
from sih.base.files.reading import reading


def write_json(
    path: str | Path, value: Any, *, indent: int | None = None, allow_nan: bool = True
) -> None:
    """Write plain values as a JSON file that ends in a newline, whole or not at all."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=allow_nan)
    with atomic_write(path) as file:
        file.write(f"{text}\n".encode())


def read_json(path: str | Path) -> Any:
    """Return the value in a JSON file, or raise a ValueError that names the file."""
    with reading(path, "is not a JSON file"):
        return json.loads(Path(path).read_bytes())
