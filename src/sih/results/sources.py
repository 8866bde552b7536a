"""The source files behind an answer, and a digest of their meaning to Python.

Files are found by reading them, not by running them. Comments, docstrings and line
breaks do not count. No number depends on them, so a changed comma recomputes nothing.
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
"""Files beside a module on which its answers may depend."""


@dataclass(frozen=True)
class Source:
    """The relevant parts of a Python file."""

    digest: bytes
    names: frozenset[str]
    """Names that it imports from the package: modules, and their contents."""


def digest(module: str) -> str:
    """Return the digest of all code behind the module's answers: any change of it
    changes the digest.
    """
    whole = hashlib.sha256()
    (top,) = _file(ROOT)
    for path in sorted(source_files(module)):
        ours = path.is_relative_to(top.parent)
        name = path.relative_to(top.parent).as_posix() if ours else path.name
        whole.update(name.encode() + digest_of_file(path))
    return whole.hexdigest()


def digest_of_file(path: Path) -> bytes:
    """Return the digest of a file's relevant parts: the syntax tree of Python, every
    byte of others.
    """
    content = path.read_bytes()
    if path.suffix == ".py":
        return read_source(content).digest
    return hashlib.sha256(content).digest()


def source_files(module: str) -> set[Path]:
    """Return the files of the module and of all its imports from the package, with
    those in C or of data beside them.
    """
    found = {path for name in closure(module) for path in _file(name)}
    beside = (path.parent.glob(pattern) for path in found for pattern in BESIDE)
    return found.union(*beside)


def closure(module: str) -> set[str]:
    """Return the module and all modules of the package that it imports, directly or
    not.

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
    """Return the modules of the package that a module's file imports, at its top or
    inside functions, with their folders.
    """
    parts = module.split(".")
    found = {
        ".".join(parts[:n]) for n in range(2, len(parts))
    }  # not the whole package, with the names of other modules
    for path in _file(module):
        found |= read_source(path.read_bytes()).names
    return frozenset(name for name in found if _file(name))


@cache
def read_source(content: bytes) -> Source:
    """Return the relevant parts of a Python file's content."""
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
    """Remove statements that are bare strings: docstrings, and those of fields."""
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
    """Return the file of a module, None if the name is a function or class in one."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return ()
    return (Path(spec.origin),) if spec and spec.origin else ()
