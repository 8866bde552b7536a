"""Mutation: small changes to the source, each of which some test should notice.

`python -m torture.mutation --mutants 300 --seed 0 --out FOLDER` changes one operator, sign, comparison or small number
at a time and runs the tests that execute its line, those of the changed module first, the quickest first, up to the
first failure. What survives is tried again with annotated shapes checked, which takes most of a test's time.

The tests are collected once, and every mutant is a fork in which the code of one function is exchanged. Which test
executes which line is recorded before: what fails then, or takes over 3 s, is left out. A change outside functions,
or in one that runs only while the package is loaded, is tried in a process of its own, on the tests of its module
alone. Processes that a test starts run the source as it is.

FOLDER keeps what was found; a mutant in it is not tried again, unless `--only` names it. `--unchanged` is the control:
the same with nothing changed, where all must survive.

`--rooms attention training/soap.py` chooses packages and modules, `--but report/page.py` leaves some of them out; the
default is `ROOMS`. Places are drawn from these alone: the same rooms, number and seed name the same mutants.

Left out are places where a change cannot matter: annotations, errors' messages, `__repr__`, and `SPARED` arguments.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import hashlib
import importlib.machinery
import itertools
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

TOP = Path(__file__).parents[2]
SOURCE, UNIT = TOP / "src" / "sih", TOP / "tests" / "unit"
CORE = ("base", "task", "predictors", "circuits", "heads")
SUBJECTS = ("paper", "claim", "beyond")
ROOMS = (*CORE, "attention", "training", "results", *SUBJECTS, "report")
NEIGHBOURS = {
    "attention": SUBJECTS, "training": ("attention",), "results": (*SUBJECTS, "report"),
    **dict.fromkeys(SUBJECTS, ("results", "report")), "report": SUBJECTS,
}  # fmt: skip
"""Rooms whose tests are run too, as are those that are in no room, on what a room's own tests let live.

The rooms that are not listed have `attention` and `training`.
"""
OTHER_NAMES = {
    "paper/errata.py": "test_errata_figure.py",
    "paper/agreement_statements.py": "test_attention_statements.py",
    "paper/certificates_statements.py": "test_circuit_statements.py",
    "paper/constructions_statements.py": "test_circuit_statements.py",
    "paper/heads_statements.py": "test_circuit_statements.py",
    "paper/scaling_statements.py": "test_training_statements.py",
    "paper/trained_statements.py": "test_training_statements.py",
    "claim/beta_statements.py": "test_claim_statements.py",
    "claim/claim_cumulative_statements.py": "test_claim_statements.py",
    "claim/claim_expectations_statements.py": "test_claim_statements.py",
    "claim/claim_histogram.py": "test_claim_expectations.py",
    "claim/wrong_lag_statements.py": "test_claim_statements.py",
    "beyond/evidence_paths/channels_statements.py": "test_channel_statements.py",
}
"""Tests of a module whose file is not named after it."""
SLOW = 3.0
"""Seconds of the processor, while lines are recorded, after which a test is cut short and left out."""
ELSEWHERE, CHECKED = 20.0, 4.0
"""Seconds of tests of other modules that are run on what its own let live, and of all tests with shapes checked."""
SPARED = {"indent", "stacklevel", "maxsize"}
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt,
    ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
Recorded = dict[str, tuple[float, dict[str, list[int]]]]
"""The seconds that a test takes, and the lines of each module that it executes."""
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def places(node: ast.AST) -> list[ast.AST]:
    """List the nodes that can be changed, in the order of the source."""
    found = [node] if _changeable(node) else []
    for name, value in ast.iter_fields(node):
        spared = name in ("annotation", "returns") or (
            isinstance(node, ast.keyword) and node.arg in SPARED
        )
        if (
            not spared
            and not isinstance(node, ast.Raise)
            and getattr(node, "name", "") != "__repr__"
        ):
            for child in value if isinstance(value, list) else [value]:
                found += places(child) if isinstance(child, ast.AST) else []
    return found


def _changeable(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        left = getattr(node, "left", None)
        text = isinstance(left, ast.JoinedStr) or isinstance(getattr(left, "value", 0), str)
        return type(node.op) in SWAPS and not text
    return (
        (isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS)
        or (isinstance(node, ast.Constant) and type(node.value) is int and 0 <= node.value < 4)
        or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not))
    )


def change(node: Any) -> str:
    """Change a node in its tree: what was done."""
    before = ast.unparse(node)
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.Constant):
        node.value = int(node.value) + 1  # type: ignore[arg-type]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node.op = ast.UAdd()
    else:
        node.operand = ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node)
    return f"{before}  ->  {ast.unparse(node)}"


@dataclass(frozen=True)
class Mutant:
    """A module with one place changed: what was done, on which lines, and in which function, "" if in none."""

    module: str
    place: int
    tree: ast.Module
    what: str
    lines: range
    function: str

    @staticmethod
    def of(module: str, place: int, *, unchanged: bool = False) -> Mutant:
        tree = ast.parse((SOURCE / module).read_text())
        node = places(tree)[place]
        way = _way(tree, node)
        statement = [one for one in way if isinstance(one, ast.stmt)][-1]
        body = getattr(statement, "body", None)  # of which the head is meant
        lines = range(statement.lineno, body[0].lineno if body else (statement.end_lineno or 0) + 1)
        names = []
        for one, inner in zip(way, [*way[1:], None], strict=True):
            names += [one.name] if isinstance(one, FUNCTIONS | ast.ClassDef) else []
            if isinstance(one, FUNCTIONS) and inner in one.body:
                break
        else:
            names = []
        return Mutant(
            module, place, tree, "nothing" if unchanged else change(node), lines, ".".join(names)
        )

    @property
    def tests(self) -> str:
        """Name the file of the module's own tests."""
        return str(_tests(self.module).relative_to(TOP))

    def code(self) -> CodeType:
        return compile(self.tree, str(SOURCE / self.module), "exec")


def _way(root: ast.AST, node: ast.AST) -> list[ast.AST]:
    """List the nodes on the way from a root, left out, to a node in it."""
    for child in ast.iter_child_nodes(root):
        if child is node:
            return [child]
        if inner := _way(child, node):
            return [child, *inner]
    return []


def _tests(module: str) -> Path:
    return (UNIT / module).with_name(OTHER_NAMES.get(module, f"test_{Path(module).name}"))


def key(module: str, place: int) -> str:
    return f"{module}@{_digest(SOURCE / module)}:{place}"


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


def modules(rooms: Sequence[str] = ROOMS, but: Sequence[str] = ()) -> list[str]:
    """List the modules that are changed: those of the rooms that have tests of their own."""
    found = [path for room in rooms for path in _files(room)]
    left_out = {path for room in but for path in _files(room)}
    names = [str(path.relative_to(SOURCE)) for path in found if path not in left_out]
    return [name for name in names if _tests(name).exists()]


def _files(room: str) -> list[Path]:
    path = SOURCE / room
    if not path.exists():
        raise SystemExit(
            f"no package or module {room} in {SOURCE}; the default is {' '.join(ROOMS)}"
        )
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def folders(rooms: Sequence[str]) -> list[Path]:
    """List the folders of the tests that are run on mutants of rooms, those in no room left out."""
    names = {Path(room).parts[0] for room in rooms}
    wanted = {
        near for name in names for near in (name, *NEIGHBOURS.get(name, ("attention", "training")))
    }
    return sorted(UNIT / name for name in wanted if (UNIT / name).is_dir())


def sampled(number: int, seed: int, names: Sequence[str] | None = None) -> list[tuple[str, int]]:
    """Draw places to change, of modules, of all if none are named."""
    chosen = modules() if names is None else names
    every = [
        (name, n)
        for name in chosen
        for n in range(len(places(ast.parse((SOURCE / name).read_text()))))
    ]
    return random.Random(seed).sample(every, min(number, len(every)))


def forked(work: Callable[[], Any], folder: Path, limit: float) -> Any:
    """Do work in a fork: what it returns, or minus the number of the signal that ended it."""
    told = folder / "told.json"
    told.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit)))
        resource.setrlimit(resource.RLIMIT_DATA, (2**33, 2**33))
        signal.alarm(int(6 * limit))  # for what waits without working
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        try:
            told.write_text(json.dumps(work()))
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    assert told.exists() or code, "the work itself failed"
    return json.loads(told.read_text()) if told.exists() else code


class Campaign:
    """Tries mutants within a session of pytest, as its plugin."""

    def __init__(
        self,
        mutants: dict[int, tuple[str, int]],
        names: list[str],
        out: Path,
        folder: Path,
        *,
        checked: bool,
        unchanged: bool = False,
    ) -> None:
        self.mutants, self.names, self.out, self.folder = mutants, names, out, folder
        self.checked, self.unchanged = checked, unchanged
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.failed += [report.nodeid] if report.failed else []

    def pytest_runtestloop(self, session: Any) -> bool:
        import sih

        assert Path(sih.__file__).parent == SOURCE, sih.__file__
        for name in self.names:
            importlib.import_module(f"sih.{name[:-3].replace('/', '.')}")
        self.items = {item.nodeid: item for item in session.items}
        self.live = [one for one in gc.get_objects() if type(one) is FunctionType]
        self.live = [one for one in self.live if one.__code__.co_filename.startswith(str(SOURCE))]
        gc.collect()
        gc.freeze()  # so that forks share what they do not write
        recorded = self.recorded()
        for number, (module, place) in self.mutants.items():
            mutant = Mutant.of(module, place, unchanged=self.unchanged)
            verdict, by = self.verdict(mutant, recorded)
            line = {
                "number": number,
                "key": key(module, place),
                "verdict": verdict,
                "by": by,
                "checked": self.checked,
            }
            line |= {"line": mutant.lines.start, "what": mutant.what}
            with _kept(self.out, self.unchanged).open("a") as file:
                file.write(json.dumps(line) + "\n")
            where = f"{module}:{mutant.lines.start}"
            print(f"{number:>4} {verdict:<16} {where}  {mutant.what[:100]}  {by}", flush=True)
        return True

    def recorded(self) -> Recorded:
        """Find the quick tests that pass: the time each takes, and the lines it executes."""
        path, source = self.out / "recorded.json", _digest(*(SOURCE / name for name in self.names))
        kept = json.loads(path.read_text()) if path.exists() else {}
        for file in sorted({name.split("::")[0] for name in self.items}):
            digest = source + _digest(TOP / file)
            if kept.get(file, [""])[0] != digest and not self.checked:
                found = forked(lambda file=file: self.record(file), self.folder, 1200)  # type: ignore[misc]
                print(
                    f"     {file}: {found if isinstance(found, int) else len(found)} tests",
                    flush=True,
                )
                kept[file] = [digest, {} if isinstance(found, int) else found]
                path.write_text(json.dumps(kept))
        return {
            name: value
            for _, tests in kept.values()
            for name, value in tests.items()
            if name in self.items
        }

    def record(self, file: str) -> Recorded:
        found, names = {}, {str(SOURCE / name): name for name in self.names}
        lines: dict[str, set[int]] = {}

        def local(frame: Any, event: str, _: object) -> Any:
            lines.setdefault(names[frame.f_code.co_filename], set()).add(frame.f_lineno)
            return local

        def trace(frame: Any, event: str, value: object) -> Any:
            return local(frame, event, value) if frame.f_code.co_filename in names else None

        for name in self.items:
            if name.split("::")[0] == file:
                lines.clear()
                began = time.process_time()
                sys.settrace(trace)
                failed = self.run([name], lambda _: SLOW, _too_slow)
                sys.settrace(None)
                if not failed:
                    found[name] = (
                        time.process_time() - began,
                        {one: sorted(seen) for one, seen in lines.items()},
                    )
        return found

    def run(
        self, names: list[str], limit: Callable[[str], float], handler: Any = signal.SIG_DFL
    ) -> str:
        """Run tests up to the first that fails: its name, or ""."""
        signal.signal(signal.SIGPROF, handler)
        for name, after in itertools.zip_longest(names, names[1:]):
            item = self.items[name]
            signal.setitimer(signal.ITIMER_PROF, limit(name))
            item.ihook.pytest_runtest_protocol(
                item=item, nextitem=self.items[after] if after else None
            )
            signal.setitimer(signal.ITIMER_PROF, 0)
            if self.failed:
                return self.failed.pop()
        return ""

    def verdict(self, mutant: Mutant, recorded: Recorded) -> tuple[str, str]:
        """Try a mutant: what became of it, and the test that noticed it."""
        quickest = sorted(recorded, key=lambda name: recorded[name][0])
        reach = [
            name
            for name in quickest
            if not {*mutant.lines}.isdisjoint(recorded[name][1].get(mutant.module, ()))
        ]
        if (
            not mutant.function or not reach
        ):  # or it runs while the package is loaded, and never again
            own = [name for name in quickest if name.startswith(mutant.tests)]
            found = forked(lambda: self.run_anew(mutant, own), self.folder, 100) if own else ""
            if mutant.function and not found:
                return "not reached", ""
        else:
            own = [name for name in reach if name.startswith(mutant.tests)]
            others = [name for name in reach if name not in own]
            if self.checked:
                names = _within(CHECKED, own + others, recorded)
            else:
                names = own + _within(ELSEWHERE, others, recorded)
            limit = lambda name: (20 if self.checked else 4) * (1 + recorded[name][0])  # noqa: E731
            found = forked(lambda: self.run_changed(mutant, names, limit), self.folder, 600)
        if isinstance(found, int):
            return "timed out" if -found in (
                signal.SIGPROF,
                signal.SIGXCPU,
                signal.SIGALRM,
            ) else "killed", f"{found}"
        return (
            "killed" if found.startswith(mutant.tests) else "killed elsewhere"
        ) if found else "survived", found

    def run_changed(self, mutant: Mutant, names: list[str], limit: Callable[[str], float]) -> str:
        """Exchange the function's code wherever it is in use, and run tests."""
        codes, wanted = [mutant.code()], {}
        for code in codes:  # which grows
            wanted[code.co_qualname] = code
            codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        changed = 0
        for function in self.live:
            code = function.__code__
            if code.co_qualname == mutant.function and code.co_filename == str(
                SOURCE / mutant.module
            ):
                function.__code__, changed = wanted[mutant.function], changed + 1
        assert changed, f"{mutant.function} is not in use"
        return self.run(names, limit)

    def run_anew(self, mutant: Mutant, names: list[str]) -> str:
        """Run tests in a process of their own, which loads the changed module in place of the source."""
        given = [mutant.module, mutant.place, int(self.unchanged), int(self.checked)]
        script = (
            f"import sys, torture.mutation as m; sys.exit(m.run_tests_of(*{given}, sys.argv[1:]))"
        )
        paths = os.pathsep.join((str(SOURCE.parent), str(TOP / "tests"), str(TOP)))
        code = subprocess.run(
            [sys.executable, "-c", script, *names],
            check=False,
            env=os.environ | {"PYTHONPATH": paths},
        ).returncode
        return "" if code == 0 else f"{mutant.tests} ({code})"


def run_tests_of(module: str, place: int, unchanged: bool, checked: bool, names: list[str]) -> int:
    """Run tests with a mutant in place of its module, which is not loaded yet: the exit code of pytest."""
    import pytest

    before, changed = (
        importlib.machinery.SourceFileLoader.get_code,
        f"sih.{module[:-3].replace('/', '.')}",
    )
    code = Mutant.of(module, place, unchanged=unchanged).code()
    get_code = lambda loader, asked: code if asked == changed else before(loader, asked)  # noqa: E731
    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    _check_shapes(checked)
    return int(pytest.main(["-x", "-p", "no:cacheprovider", *names]))


def _check_shapes(checked: bool) -> None:
    import jaxtyping

    if not checked:
        jaxtyping.install_import_hook = lambda *_: contextlib.nullcontext()


def _within(seconds: float, names: list[str], recorded: Recorded) -> list[str]:
    """Take names from the first on while their tests take less than that together."""
    spent = itertools.accumulate(recorded[name][0] for name in names)
    return [name for name, total in zip(names, spent, strict=True) if total < seconds]


def _too_slow(*_: object) -> None:
    raise TimeoutError


def session(campaign: Campaign, rooms: Sequence[str]) -> None:
    """Collect the tests, with annotated shapes checked or not, and try the mutants."""
    import pytest

    _check_shapes(campaign.checked)
    how = ["-s", "-p", "no:cacheprovider", "--basetemp", str(campaign.folder / "tests")]
    code = pytest.main(
        [*how, *map(str, [*folders(rooms), *sorted(UNIT.glob("test_*.py"))])], [campaign]
    )
    if code:
        print(f"pytest ended with {code!r}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture.mutation", description=__doc__)
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--rooms", nargs="+", default=list(ROOMS), help="packages and modules that are changed"
    )
    parser.add_argument(
        "--but",
        nargs="+",
        default=[],
        help="packages and modules of them that are left as they are",
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of what was found, outside the repository"
    )
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants, to try them again")
    parser.add_argument(
        "--unchanged", action="store_true", help="a control: the same, with nothing changed"
    )
    given = parser.parse_args()
    import beartype  # noqa: F401
    import hypothesis  # noqa: F401 (loaded once, for both sessions)
    import matplotlib.pyplot  # noqa: F401
    import sympy  # noqa: F401
    import torch
    import torch._dynamo
    import tyro  # noqa: F401

    torch.set_num_threads(1)
    os.chdir(TOP)
    os.environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    given.out.mkdir(parents=True, exist_ok=True)
    names = modules(given.rooms, given.but)
    chosen = dict(enumerate(sampled(given.mutants, given.seed, names)))
    for checked in (False, True):
        found = {
            number: known(given.out, given.unchanged).get(key(*place))
            for number, place in chosen.items()
        }
        left = {number for number, one in found.items() if not one}
        if checked:
            left = {
                number
                for number, one in found.items()
                if one and one["verdict"] == "survived" and not one["checked"]
            }
        elif given.only:
            left = {*given.only}
        if left:
            with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
                child = os.fork()
                if child == 0:
                    mutants = {number: chosen[number] for number in sorted(left)}
                    where = (mutants, names, given.out, Path(folder))
                    session(
                        Campaign(*where, checked=checked, unchanged=given.unchanged), given.rooms
                    )
                    os._exit(0)
                os.waitpid(child, 0)
    counts = Counter(
        one["verdict"]
        for place in chosen.values()
        if (one := known(given.out, given.unchanged).get(key(*place)))
    )
    print(
        f"{sum(counts.values())} mutants:",
        ", ".join(f"{name} {count}" for name, count in counts.most_common()),
    )
    return 0


def _kept(out: Path, unchanged: bool) -> Path:
    return out / ("unchanged.jsonl" if unchanged else "mutants.jsonl")


def known(out: Path, unchanged: bool = False) -> dict[str, Any]:
    """Read what was found: the last word on each mutant."""
    path = _kept(out, unchanged)
    return (
        {line["key"]: line for line in map(json.loads, path.read_text().splitlines())}
        if path.exists()
        else {}
    )


if __name__ == "__main__":
    sys.exit(main())
