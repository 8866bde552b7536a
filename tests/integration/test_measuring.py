"""What is measured before and after a move: the size of a program, and the numbers of two folders of results."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import size
from benchmarks.compare_checkouts import main as compare
from benchmarks.compare_checkouts import numbers

SOURCE = '''"""A docstring counts nothing."""

import math

A, B = 1, 2


def area(x, y):
    """Nor does this one."""
    if x and y:
        # nor a comment
        return x * y
    return sum(each for each in (x, y) if isinstance(x, (PaperCircuit, Transformer)))
'''


def test_size_counts_what_is_written() -> None:
    found = size.size(SOURCE)
    # A, B = 1, 2: Assign, two Tuples with their contexts, A and B with theirs, 1 and 2: 1 + (1 + 1 + 4) + (1 + 1 + 2);
    # if x and y: If, BoolOp, And, x and y with theirs: 7; return x * y: Return, BinOp, Mult, x and y: 7
    last = len(list(ast.walk(ast.parse(SOURCE.splitlines()[-1].strip())))) - 1  # without Module
    assert found["statements"] == 4
    assert found["in statements"] == 11 + 7 + 7 + last
    assert found["branches"] == 3  # if, and, the comprehension
    assert (found["kinds"], found[">40"], found["code"], found["prose"]) == (1, 0, 0, 0)
    assert found["lines"] == SOURCE.count("\n")


def test_docstrings_comments_and_line_breaks_change_no_node() -> None:
    shorter = SOURCE.replace('    """Nor does this one."""\n', "").replace(
        "        # nor a comment\n", ""
    )
    wrapped = SOURCE.replace("A, B = 1, 2", "A, B = (\n    1,\n    2,\n)")
    assert {size.size(each)["nodes"] for each in (SOURCE, shorter, wrapped)} == {
        size.size(SOURCE)["nodes"]
    }


def test_lines_are_wide_by_their_kind() -> None:
    source = f'x = "{"a" * 96}"\n# {"a" * 87}\n"""{"a" * 86}"""\n# {"a" * 86}\n'
    found = size.size(source)
    assert (found["code"], found["prose"]) == (1, 2)


def test_names_that_stand_twice_and_rooms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "one.py").write_text("A, B = 1, 2\ndef compute(): ...\ndef _own(): ...\n")
    (tmp_path / "two.py").write_text(
        "A: int = 1\ndef compute(): ...\ndef _own(): ...\ndef b(): ...\n"
    )
    (tmp_path / "three_command.py").write_text("def b(): ...\n")
    assert size.names_that_stand_twice([tmp_path]) == ["A"]
    assert sorted(size.rooms([tmp_path])) == ["room", "three_command", "two"]
    size.main([str(tmp_path / "room"), "--", str(tmp_path / "two.py")])
    printed = capsys.readouterr().out
    assert "names twice: 0" in printed
    assert printed.splitlines()[-1].startswith("difference")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("old", "new"):
        (tmp_path / name / "data").mkdir(parents=True)
        report = [{"id": "claim", "verdict": "holds", "measured": {"value": 0.25}}]
        (tmp_path / name / "report.json").write_text(json.dumps(report))
    (tmp_path / "old" / "data" / "curves_1.2.json").write_text(
        json.dumps({"mean": [0.1, 0.2], "deep": {"error": [0.3]}})
    )
    (tmp_path / "old" / "data" / "curves_1.2.csv").write_text("a,b\n1,2\n")
    (tmp_path / "new" / "data" / "curves_1.2.csv").write_text("c,d\n1,2\n")
    return tmp_path / "old", tmp_path / "new"


def test_numbers_may_move_into_arrays(folders: tuple[Path, Path]) -> None:
    old, new = folders
    (new / "data" / "curves_1.2.json").write_text(
        json.dumps({"arrays": "curves_1.2.npz", "windows": 3})
    )
    np.savez(
        new / "data" / "curves_1.2.npz", kl=np.array([[0.2 + 1e-16], [0.3]]), mean=np.array(0.1)
    )
    assert list(numbers(old, new)) == []
    assert compare("numbers", str(old), str(new)) == 0


def test_what_is_lost_or_judged_otherwise_is_said(folders: tuple[Path, Path]) -> None:
    old, new = folders
    np.savez(new / "data" / "curves_1.2.npz", kl=np.array([0.2, 0.3 + 1e-9]))
    (new / "report.json").write_text(
        json.dumps([{"id": "claim", "verdict": "fails", "measured": {"value": 0.25}}])
    )
    (new / "data" / "curves_1.2.csv").write_text("c,d\n1,3\n")
    found = "\n".join(numbers(old, new))
    assert "2 of 3 numbers are lost [0.1, 0.3]" in found
    assert "verdict on claim was holds and is fails" in found
    assert "curves_1.2.csv: row 1" in found
    assert compare("numbers", str(old), str(new)) == 1
    assert len(list(numbers(old, new, "curves_1.2"))) == 1
    (new / "data" / "curves_1.2.npz").unlink()
    assert f"data/curves_1.2.json: only in {old}" in list(numbers(old, new))
