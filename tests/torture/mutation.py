"""Mutation: small changes to the source, each of which some test of the module that it is in should notice.

`python -m torture.mutation --mutants 300 --seed 0` copies the package, changes one operator, number or comparison at a
time, and runs the tests of the changed module alone, the quickest first, stopping at the first failure. Those tests are
first run on the source as it is: what fails then, or takes over 2 s, is left out, and said.

Each run is a fork of a process that has torch and pytest loaded. It leaves out the checking of annotated shapes, which
takes most of the time; what survives is tried again with it.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOP = Path(__file__).parents[2]
ROOMS = ("predictors.py", "evidence.py", "task", "construction", "theory", "runs")
SECONDS = 20.0
"""Processor time that a mutant may take beyond what its tests took on the source as it is."""
SLOW = 2.0
"""Tests that take more are cut short and left out."""
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


@dataclass
class Watch:
    """Orders tests by the time they take and leaves some out, or finds out which those are, as a plugin of pytest."""

    order: dict[str, float] | None = None
    took: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self.order is not None:
            chosen = sorted((one for one in items if one.nodeid in self.order), key=lambda one: self.order[one.nodeid])  # type: ignore[index]
            items[:] = chosen

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.took[nodeid] = -time.process_time()
        if self.order is None:
            signal.signal(signal.SIGPROF, _too_slow)
            signal.setitimer(signal.ITIMER_PROF, SLOW)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.took[nodeid] += time.process_time()

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)


def _too_slow(*_: object) -> None:
    raise TimeoutError


def run(tests: Path, copy: Path, watch: Watch, *, checked: bool, limit: float, told: Path | None = None) -> int:
    """Run tests in a fork, on the copy: its exit code, or minus the number of the signal that ended it."""
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.alarm(int(20 * limit))  # for what waits without working
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        os.environ |= {"PYTHONPATH": str(copy), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        sys.path.insert(0, str(copy))
        import jaxtyping
        import pytest

        if not checked:
            jaxtyping.install_import_hook = lambda *_: contextlib.nullcontext()
        code = 70
        try:
            how = ["-q" if watch.order is None else "-x", "--assert=plain", "-p", "no:cacheprovider"]
            code = int(pytest.main([*how, str(tests)], [watch]))
            if told is not None:
                told.write_text(json.dumps([watch.took, watch.failed]))
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


class Modules:
    """Keeps, for each module, its quick tests and the time they take on the source as it is."""

    def __init__(self, copy: Path) -> None:
        self.copy, self.known = copy, dict[Path, dict[str, float]]()

    def order(self, module: Path) -> dict[str, float]:
        if module not in self.known:
            told = self.copy.parent / "told.json"
            told.write_text("[{}, []]")
            run(tests_of(module), self.copy, Watch(), checked=False, limit=300, told=told)
            took, failed = json.loads(told.read_text())
            slow = {one for one in took if took[one] >= SLOW}
            kept = {one: took[one] for one in took if one not in {*slow, *failed}}
            if not kept:
                raise SystemExit(f"no quick test of {module} passes on the source as it is: mend that first")
            self.known[module] = kept
            left_out = f"; left out: {len(slow)} slow, {len({*failed} - slow)} failing without checked shapes"
            print(f"     {module}: {len(kept)} tests in {sum(kept.values()):.1f} s{left_out}", flush=True)
        return self.known[module]

    def verdict(self, module: Path) -> str:
        order = self.order(module)
        limit = SECONDS + 2 * sum(order.values())
        code = run(tests_of(module), self.copy, Watch(order), checked=False, limit=limit)
        if code == 0:
            code = run(tests_of(module), self.copy, Watch(order), checked=True, limit=2 * limit)
        if code in (4, 5, 70):  # pytest's own: a wrong call, no tests
            raise SystemExit(f"the tests of {module} could not be run: exit code {code}")
        timed_out = code in (-signal.SIGPROF, -signal.SIGALRM)
        return "survived" if code == 0 else "timed out" if timed_out else "killed"


@contextlib.contextmanager
def mutated(module: Path, place: int, copy: Path) -> Iterator[tuple[int, str]]:
    """Change one place of a module of the copy within the block: gives the line and what was done."""
    path = copy / "sih" / module
    text = path.read_text()
    new, line, what = changed(text, place)
    try:
        _write(path, new)
        yield line, what
    finally:
        _write(path, text)


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    for kept in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        kept.unlink()  # which tells changes by second and size alone


def sampled(number: int, seed: int) -> list[tuple[Path, int]]:
    """Draw places to change, of all modules that have tests of their own."""
    source = TOP / "src" / "sih"
    files = [
        path
        for room in ROOMS
        for path in ([source / room] if room.endswith(".py") else sorted((source / room).rglob("*.py")))
    ]
    modules = [path.relative_to(source) for path in files if tests_of(path.relative_to(source)).exists()]
    every = [(path, n) for path in modules for n in range(len(places(ast.parse((source / path).read_text()))))]
    return random.Random(seed).sample(every, number)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants, to try them again")
    parser.add_argument("--first", type=int, default=0, help="go on from this one")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no new mutant is begun")
    given = parser.parse_args()
    import beartype  # noqa: F401
    import hypothesis  # noqa: F401 (loaded once, for all forks)
    import matplotlib.pyplot  # noqa: F401
    import pytest  # noqa: F401
    import sympy  # noqa: F401
    import torch
    import torch._dynamo
    import tyro  # noqa: F401

    torch.set_num_threads(1)
    os.chdir(TOP)
    counts, began = Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "src"
        shutil.copytree(TOP / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        modules = Modules(copy)
        for number, (module, place) in enumerate(sampled(given.mutants, given.seed)):
            if number < given.first or (given.only is not None and number not in given.only):
                continue
            if time.monotonic() - began > given.seconds:
                break
            modules.order(module)
            with mutated(module, place, copy) as (line, what):
                verdict = modules.verdict(module)
            counts[verdict] += 1
            print(f"{number:>4} {verdict:<9} {module}:{line}  {what[:150]}", flush=True)
    print(f"{sum(counts.values())} mutants:", ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
