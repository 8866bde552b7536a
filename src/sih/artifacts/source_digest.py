"""Which source files an answer rests on, and a digest of them: found by reading them, not by running them."""

import ast
import hashlib
import importlib.util
from functools import cache
from pathlib import Path

ROOT = "sih"


def digest(module: str) -> str:
    """Digest all files that the module's answers rest on, so that a change of any of them changes it."""
    whole = hashlib.sha256()
    (top,) = _file(ROOT)
    for path in sorted(source_files(module)):
        name = path.relative_to(top.parent).as_posix()
        whole.update(name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def source_files(module: str) -> set[Path]:
    """List the files of the module and of all that it imports of the package, and those in C beside any of them."""
    found = {path for name in closure(module) for path in _file(name)}
    return found.union(*(path.parent.glob("*.c") for path in found))


def closure(module: str) -> set[str]:
    """List the module and all modules of the package that it imports, directly or not.

    >>> sorted(closure("sih.stats"))
    ['sih.stats']
    """
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += imports(name)
    return found


@cache
def imports(module: str) -> frozenset[str]:
    """List what of the package the module's file imports, at its top or inside functions, and the folders it is in."""
    parts = module.split(".")
    found = {".".join(parts[:n]) for n in range(2, len(parts))}  # not the whole package: its names are other modules'
    for path in _file(module):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in found if name.split(".")[0] == ROOT and _file(name))


@cache
def _file(name: str) -> tuple[Path, ...]:
    """Find the file of a module, none for a name that is a function or class in one."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return ()
    return (Path(spec.origin),) if spec and spec.origin else ()
