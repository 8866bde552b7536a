"""Which source files an answer rests on, and a digest of what they say to Python.

Files are found by reading them, not by running them. Comments, docstrings and line breaks do not count: no number
depends on them, so that none is computed again for a comma.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = "sih"
BESIDE = ("*.c", "*.npz", "*.json")
"""Files beside a module that its answers may rest on."""


@dataclass(frozen=True)
class Source:
    """What counts of a Python file."""

    digest: bytes
    names: frozenset[str]
    """Names that it imports of the package: modules, and what is taken from them."""


def digest(module: str) -> str:
    """Digest all code that the module's answers rest on, so that a change of any of it changes the digest."""
    whole = hashlib.sha256()
    (top,) = _file(ROOT)
    for path in sorted(source_files(module)):
        ours = path.is_relative_to(top.parent)
        name = path.relative_to(top.parent).as_posix() if ours else path.name
        whole.update(name.encode() + digest_of_file(path))
    return whole.hexdigest()


def digest_of_file(path: Path) -> bytes:
    """Digest what counts of a file: the syntax tree of Python, every byte of others."""
    content = path.read_bytes()
    if path.suffix == ".py":
        return read_source(content).digest
    return hashlib.sha256(content).digest()


def source_files(module: str) -> set[Path]:
    """List the files of the module and of all that it imports of the package, and those in C or of data beside them."""
    found = {path for name in closure(module) for path in _file(name)}
    beside = (path.parent.glob(pattern) for path in found for pattern in BESIDE)
    return found.union(*beside)


def closure(module: str) -> set[str]:
    """List the module and all modules of the package that it imports, directly or not.

    >>> sorted(closure("sih.base.stats"))
    ['sih.base', 'sih.base.stats']
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
    found = {
        ".".join(parts[:n]) for n in range(2, len(parts))
    }  # not the whole package: its names are other modules'
    for path in _file(module):
        found |= read_source(path.read_bytes()).names
    return frozenset(name for name in found if _file(name))


@cache
def read_source(content: bytes) -> Source:
    """Read what counts of a Python file's content."""
    tree = ast.parse(content)
    names = frozenset(name for name in _imported(tree) if name.split(".")[0] == ROOT)
    said = ast.dump(_without_docstrings(tree))
    return Source(hashlib.sha256(said.encode()).digest(), names)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a file imports: modules, and `module.name` for what is taken from one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """Take away statements that are bare strings: docstrings, and those of fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return tree


def _is_text(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
        return False
    return isinstance(node.value.value, str)


@cache
def _file(name: str) -> tuple[Path, ...]:
    """Find the file of a module, none for a name that is a function or class in one."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return ()
    return (Path(spec.origin),) if spec and spec.origin else ()
