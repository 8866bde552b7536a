"""Mutation: small changes to the source, each of which some test of the module that it is in should notice.

`python -m torture.mutation --mutants 300 --seed 0` copies the package, changes one operator, number or comparison at a
time, and runs the tests of the changed module alone, stopping at the first failure.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

TOP = Path(__file__).parents[2]
ROOMS = ("predictors.py", "evidence.py", "task", "construction", "theory", "runs")
SECONDS = 240
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def places(tree: ast.AST) -> list[ast.AST]:
    """List the nodes that can be changed: operators, comparisons, whole numbers, signs, negations."""
    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
            left = getattr(node, "left", None)
            if not isinstance(left, ast.Constant | ast.JoinedStr) or not isinstance(getattr(left, "value", 0), str):
                found.append(node)
        elif (
            (isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS)
            or (isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 4)
            or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not))
        ):
            found.append(node)
    return found


def changed(source: str, number: int) -> tuple[str, int, str]:
    """Change the place with this number: the new source, its line, and what was done."""
    tree = ast.parse(source)
    node = places(tree)[number]
    before = ast.unparse(node)
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = int(node.value) + 1  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else node.op
        if isinstance(node.op, ast.Not):
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
    return ast.unparse(tree), node.lineno, f"{before}  ->  {ast.unparse(node)}"  # type: ignore[attr-defined]


def tests_of(module: Path) -> Path:
    return TOP / "tests" / "unit" / module.parent / f"test_{module.name}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="go on from this one")
    given = parser.parse_args()
    source = TOP / "src" / "sih"
    files = [
        path
        for room in ROOMS
        for path in ([source / room] if room.endswith(".py") else sorted((source / room).rglob("*.py")))
    ]
    modules = [path.relative_to(source) for path in files if tests_of(path.relative_to(source)).exists()]
    draw, counts = random.Random(given.seed), Counter[str]()
    every = [(path, n) for path in modules for n in range(len(places(ast.parse((source / path).read_text()))))]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(TOP / "src", copy)
        for number, (module, place) in enumerate(draw.sample(every, given.mutants)):
            if number < given.first:
                continue
            text = (source / module).read_text()
            new, line, what = changed(text, place)
            (copy / "sih" / module).write_text(new)
            shutil.rmtree(copy / "sih" / module.parent / "__pycache__", ignore_errors=True)
            verdict = _verdict(tests_of(module), copy)
            (copy / "sih" / module).write_text(text)
            counts[verdict] += 1
            print(f"{number:>4} {verdict:<9} {module}:{line}  {what[:150]}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


def _verdict(tests: Path, copy: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", str(tests)]
    try:
        done = subprocess.run(words, cwd=TOP, env=environment, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "timed out"
    return "survived" if done.returncode == 0 else "killed"


if __name__ == "__main__":
    sys.exit(main())
