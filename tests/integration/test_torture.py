"""The torture suite notices what it is for: a suite that cannot fail would say that all is clean."""

from __future__ import annotations

import ast
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from torture.damage import damaged
from torture.mutation import CORE, ROOMS, UNIT, Mutant, change, folders, modules, places, sampled
from torture.trial import Outcome, forked, tally

import sih.predictors.predictors


def _fails() -> int:
    raise RuntimeError("not a message for anybody")


def _says(*lines: str, code: int = 2) -> int:
    os.write(2, "\n".join(lines).encode())
    return code


@pytest.mark.parametrize(
    ("work", "wrong"),
    [
        (lambda: 0, ""),
        (partial(_says, "sih: no"), ""),
        (partial(_says, "figures: 1 of 2", "sih: no"), ""),
        (partial(_says, "sih: no", "more"), "not one line"),
        (partial(_says, "no"), "not one line"),
        (partial(_says, "sih: no", "sih: no"), "not one line"),
        (partial(_says, "a.py:3: UserWarning: odd", "sih: no"), "not one line"),
        (partial(_says, code=130), "not one line"),
        (_fails, "RuntimeError"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "exit code -9"),
        (lambda: time.sleep(60), "hangs"),
    ],
)
def test_what_counts_as_a_failure(work: Callable[[], int], wrong: str, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    found = forked(work, tmp_path / "here", seconds=1)
    assert found.fault.startswith(wrong) if wrong != "RuntimeError" else wrong in found.fault
    assert bool(found.fault) == bool(wrong)


def test_a_process_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    found = forked(lambda: time.sleep(60), tmp_path / "here", stop=(0.1, signal.SIGKILL))
    assert found.code == -signal.SIGKILL


def test_trials_are_counted_and_repeated_by_number() -> None:
    drawn: list[float] = []

    def trial(draw: random.Random, folder: Path) -> str:
        drawn.append(draw.random())
        return "bad" if len(drawn) == 2 else ""

    found = tally("part", [trial] * 3, seed=1)
    assert (found.tried, found.failed) == (3, [(1, "bad")])
    again = tally("part", [trial] * 3, seed=1, only=[1])
    assert (again.tried, drawn[1]) == (1, drawn[3])


def test_damage_follows_from_the_seed() -> None:
    content = b'{"a": [1, 2, {"b": 3}]}'
    made = [damaged(content, ".json", random.Random(seed)) for seed in range(200)]
    assert made == [damaged(content, ".json", random.Random(seed)) for seed in range(200)]
    assert sum(one != content for one in made) > 150
    assert len(set(made)) > 100


def test_mutants_differ_from_the_source_in_one_place() -> None:
    source = "def f(a, b):\n    return -a + b * 2 if a < b and not b else 1\n"
    trees = [ast.parse(source) for _ in places(ast.parse(source))]
    for number, tree in enumerate(trees):
        change(places(tree)[number])
    found = {ast.unparse(tree) for tree in trees}
    assert len(trees) == len(found) == 8
    assert "return +a + b * 2 if a < b and (not b) else 1" in "".join(found)
    assert ast.unparse(ast.parse(source)) not in found
    assert sampled(20, seed=0) != sampled(20, seed=1)


def test_rooms_choose_the_modules_that_are_changed() -> None:
    assert {Path(name).parts[0] for name in modules()} == set(ROOMS) > set(CORE)
    chosen = modules(["report", "training/soap.py"], but=["report/page.py"])
    assert "training/soap.py" in chosen
    assert "report/subjects.py" in chosen
    assert {"claim/beta_statements.py", "paper/trained.py"} <= {*modules(["claim", "paper"])}
    assert "report/page.py" not in chosen
    assert {Path(name).parts[0] for name in chosen} == {"report", "training"}
    assert {module for module, _ in sampled(60, 0, chosen)} <= set(chosen)
    assert sampled(60, 0, chosen) == sampled(60, 0, chosen)
    rooms = ("attention", "beyond", "claim", "paper", "report", "training")
    assert [UNIT / name for name in rooms] == folders(["report", "training/soap.py"])
    with pytest.raises(SystemExit, match="no package or module rapport"):
        modules(["rapport"])


def test_a_mutant_knows_the_file_of_its_modules_tests() -> None:
    assert Mutant.of("results/judging.py", 0).tests == "tests/unit/results/test_judging.py"
    assert Mutant.of("paper/errata.py", 0).tests == "tests/unit/paper/test_errata_figure.py"


def test_what_cannot_matter_is_not_changed() -> None:
    source = "x: tuple[1] = f(2, indent=1)\nclass A:\n    def __repr__(self):\n        return 1\nraise E(1)\n"
    assert [ast.unparse(node) for node in places(ast.parse(source))] == ["2"]


def test_a_mutant_knows_its_lines_and_its_function() -> None:
    source = Path(sih.predictors.predictors.__file__).read_text().splitlines()
    count = len(places(ast.parse("\n".join(source))))
    for mutant in (Mutant.of("predictors/predictors.py", place) for place in range(count)):
        outer = [line for line in source[: mutant.lines.stop - 1] if line.startswith("def ")]
        assert not mutant.function or outer[-1].startswith(f"def {mutant.function}(")


def test_an_outcome_of_a_check_that_says_no_is_none() -> None:
    assert Outcome(1, "", "sih: a failed: b\nsih: c failed: d\n").fault == ""
