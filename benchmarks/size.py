"""Counts what a program is made of, room by room: nodes, statements, branches, names that stand twice.

    python -m benchmarks.size                    the package
    python -m benchmarks.size src/sih/models     some folders or files
    python -m benchmarks.size OLD -- NEW         two lists, and how far the second is from the first

A room is a folder, or a file, directly in a path that is given.

    nodes        nodes of the syntax tree, docstrings apart: what is written, however wide
    mean, >40    nodes of a statement, and how many statements have more than 40. A statement that holds others counts
                 without them; imports, `def` and `class` lines are not counted
    branches     if, match, for, while, try, and/or, conditional expressions, comprehensions
    kinds        `isinstance` with a kind of model or of circuit: a class called ...Transformer or ...Circuit
    code, prose  lines of code past column 100; lines of docstrings and comments past column 88
    names twice  public names that two modules or more define at their top, but for `CONVENTIONS` and commands
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "sih"
BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.Match,
    ast.For,
    ast.While,
    ast.Try,
    ast.BoolOp,
    ast.comprehension,
)
NOT_COUNTED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
KINDS = ("Transformer", "Circuit")
LONG = 40
"""Nodes that a statement may have."""
CODE, PROSE = 100, 88
"""Columns that lines may have."""
CONVENTIONS = (
    *("CAPTION", "EXPERIMENT", "FIGURE", "FIGURES", "STATEMENTS"),
    *("compute", "draw", "main", "table"),
)
"""Names that stand in many modules on purpose."""
COLUMNS = ("files", "lines", "nodes", "mean", ">40", "branches", "kinds", "code", "prose")


def main(words: list[str]) -> None:
    """Print a table for each list of paths, and of two lists the difference."""
    middle = words.index("--") if "--" in words else len(words)
    lists = [[Path(word) for word in part] for part in (words[:middle], words[middle + 1 :])]
    sizes = [rooms(paths or [PACKAGE]) for paths in (lists if "--" in words else lists[:1])]
    for paths, by_room in zip(lists, sizes, strict=False):
        twice = names_that_stand_twice(paths or [PACKAGE])
        print_row(f"{'room':16}", COLUMNS)
        for room, size in sorted(by_room.items()):
            print_row(f"{room:16}", cells(size))
        print_row(f"{'all':16}", cells(whole(by_room)))
        print(f"names twice: {len(twice)}: {' '.join(twice)}\n")
    if len(sizes) == 2:
        old, new = map(whole, sizes)
        print_row(
            f"{'difference':16}",
            [f"{now - was:+,g}" for was, now in zip(numbers(old), numbers(new), strict=True)],
        )


def rooms(paths: list[Path]) -> dict[str, Counter[str]]:
    """Return the counts of each room in these paths."""
    found: dict[str, Counter[str]] = {}
    for path in paths:
        for file in python_files(path):
            inside = file.relative_to(path).parts[0] if file != path else path.name
            found.setdefault(inside.removesuffix(".py"), Counter()).update(size(file.read_text()))
    return found


def size(source: str) -> Counter[str]:
    """Return the counts of one file."""
    tree = ast.parse(source)
    prose = lines_of_prose(source, tree)
    nodes = list(ast.walk(without_docstrings(tree)))
    statements = [
        own_nodes(node)
        for node in nodes
        if isinstance(node, ast.stmt) and not isinstance(node, NOT_COUNTED)
    ]
    widths = [(len(line), number in prose) for number, line in enumerate(source.splitlines(), 1)]
    return Counter(
        {
            "files": 1,
            "lines": len(widths),
            "nodes": len(nodes),
            "statements": len(statements),
            "in statements": sum(statements),
            ">40": sum(count > LONG for count in statements),
            "branches": sum(isinstance(node, BRANCHES) for node in nodes),
            "kinds": sum(map(checks_kind, nodes)),
            "code": sum(width > CODE and not is_prose for width, is_prose in widths),
            "prose": sum(width > PROSE and is_prose for width, is_prose in widths),
        }
    )


def names_that_stand_twice(paths: list[Path]) -> list[str]:
    """Return the public names that two modules or more define at their top."""
    found: Counter[str] = Counter()
    for path in paths:
        for file in python_files(path):
            if file.name != "__init__.py" and not file.stem.endswith("_command"):
                found.update(set(public_names(ast.parse(file.read_text()))))
    return sorted(name for name, count in found.items() if count > 1 and name not in CONVENTIONS)


def public_names(tree: ast.Module) -> Iterator[str]:
    """Yield what a module defines at its top, without a leading underscore."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):  # A, B = ... defines two
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = (each for target in targets for each in ast.walk(target))
            names = [
                each.id
                for each in found
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            ]
        else:
            names = []
        yield from (name for name in names if not name.startswith("_"))


def python_files(path: Path) -> list[Path]:
    """Return the file, or the Python files of the folder, sorted."""
    if not path.exists():
        raise SystemExit(f"there is no file or folder {path}")
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def is_docstring(node: ast.AST) -> bool:
    """Tell whether a statement is a bare string: a docstring, or an attribute's."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def without_docstrings(tree: ast.Module) -> ast.Module:
    """Return the tree, from which docstrings are taken out."""
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            body[:] = [each for each in body if not is_docstring(each)]
    return tree


def own_nodes(statement: ast.stmt) -> int:
    """Count the nodes of a statement without the statements in it."""
    inside = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    count = 1
    while inside:
        node = inside.pop()
        count += 1
        inside += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return count


def lines_of_prose(source: str, tree: ast.Module) -> set[int]:
    """Return the numbers of the lines of docstrings and of whole-line comments."""
    comments = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.lstrip().startswith("#")
    }
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_docstring(node)]
    return comments.union(*(range(node.lineno, (node.end_lineno or 0) + 1) for node in strings))


def checks_kind(node: ast.AST) -> bool:
    """Tell whether a node is `isinstance(x, KIND)` of a class of models or circuits."""
    if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "isinstance":
        return False
    return any(
        isinstance(each, ast.Name) and each.id.endswith(KINDS) for each in ast.walk(node.args[1])
    )


def whole(by_room: dict[str, Counter[str]]) -> Counter[str]:
    """Return the sum over rooms."""
    return sum(by_room.values(), Counter())


def numbers(found: Counter[str]) -> list[float]:
    """Return the numbers of a row."""
    mean = round(found["in statements"] / max(1, found["statements"]), 1)
    return [mean if name == "mean" else found[name] for name in COLUMNS]


def cells(found: Counter[str]) -> list[str]:
    """Return a row as text."""
    return [
        f"{number:,.1f}" if name == "mean" else f"{number:,}"
        for name, number in zip(COLUMNS, numbers(found), strict=True)
    ]


def print_row(first: str, row: list[str] | tuple[str, ...]) -> None:
    """Print a row of the table."""
    print(first, *(f"{cell:>9}" for cell in row), sep="")


if __name__ == "__main__":
    main(sys.argv[1:])
