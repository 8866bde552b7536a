"""Which source files a module's answers depend on, and a digest of them: found by reading, not by running."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Collection
from functools import cache
from pathlib import Path

ROOT = "sih"


def closure(module: str, without: Collection[str] = ()) -> set[str]:
    """The module and all modules of the package that it imports, directly or not; nothing is looked up in `without`.

    >>> sorted(closure("sih.files.atomic"))
    ['sih.files.atomic']
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found and name not in without:
            found.add(name)
            waiting += imports(name)
    return found


def digest(module: str, without: Collection[str] = ()) -> str:
    """Changes with any file that the module depends on."""
    whole = hashlib.sha256()
    for name in sorted(closure(module, without)):
        for path in _file(name):
            whole.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


@cache
def imports(module: str) -> frozenset[str]:
    """What the module's file imports of the package, at its top or inside functions."""
    found = set()
    for path in _file(module):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in found if name.split(".")[0] == ROOT and _file(name))


@cache
def _file(name: str) -> tuple[Path, ...]:
    """The file of a module; none for a name that is a function or class in one."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return ()
    return (Path(spec.origin),) if spec and spec.origin else ()
