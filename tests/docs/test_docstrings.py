"""Docstrings become Markdown (run by `make docs`, which has the packages)."""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import griffe
import pytest

import sih
from website.docstrings import Readable, readable


def test_examples_become_code_and_names_links() -> None:
    found = readable("Do it, as `bma` does.\n\n>>> 1 + 1\n2\n\nAnd `mixture`, `x`.", own="mixture")
    assert "[`bma`][sih.bma]" in found
    assert "```pycon\n>>> 1 + 1\n2\n```" in found
    assert "And `mixture`, `x`." in found


def test_examples_of_several_lines_stay_together() -> None:
    found = readable("Do it.\n\n>>> for i in range(2):\n...     print(i)\n0\n1\n>>> 3\n3\n")
    assert found.count("```pycon") == 1
    assert found.rstrip().endswith(">>> 3\n3\n```")


def test_outputs_of_several_lines_stay_with_their_example() -> None:
    output = "tensor([[0.6000, 0.4000],\n        [0.4000, 0.6000]])"
    found = readable(
        f"Do it.\n\n    >>> f()\n    {output.replace(chr(10), chr(10) + '    ')}\n\nAnd [a] [b]."
    )
    assert found.count("```") == 2
    block, after = found.split("```pycon\n")[1].split("\n    ```")
    assert [line.removeprefix("    ") for line in block.splitlines()] == [
        ">>> f()",
        *output.splitlines(),
    ]
    assert after == "\n\nAnd [a] \\[b]."


def docstrings() -> Iterator[tuple[str, str, bool]]:
    """List every docstring of the package with examples: its place, its text, and whether it is a module's."""
    package = Path(sih.__file__).parent
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kinds) and ">>> " in (text := ast.get_docstring(node) or ""):
                place = f"{path.relative_to(package)}:{getattr(node, 'name', 'module')}"
                yield place, text, isinstance(node, ast.Module)


@pytest.mark.parametrize(
    ("place", "text", "module"), [pytest.param(*one, id=one[0]) for one in docstrings()]
)
def test_no_example_or_output_is_outside_its_block(place: str, text: str, module: bool) -> None:
    blocks = re.findall(r"^ *```\w+\n(.*?)^ *```", readable(text, module=module), flags=re.S | re.M)
    shown = ["\n".join(line.strip() for line in block.splitlines()) for block in blocks]
    for example in doctest.DocTestParser().get_examples(text):
        wanted = "\n".join(line.strip() for line in example.want.splitlines())
        assert any(wanted in block for block in shown), wanted


def test_two_brackets_in_prose_are_no_link() -> None:
    assert readable("Where [a] [b] and c[d][e] are.") == "Where [a] \\[b] and c[d]\\[e] are."


def test_a_modules_proof_stays_as_typed_unless_it_has_formulas() -> None:
    assert (
        readable("A lemma.\n\na <= b\n  * c", module=True)
        == "A lemma.\n\n```text\na <= b\n  * c\n```"
    )
    assert readable("A lemma.\n\n$a \\le b$", module=True) == "A lemma.\n\n$a \\le b$"


def test_shapes_stay_strings() -> None:
    code = 'def f(a: Float[Tensor, "batch *time"] | None, b: Int[Tensor, "x y"]) -> Float[Tensor, "batch *time"]: ...'
    files = {"__init__.py": code}
    with griffe.temporary_visited_package(
        "package", files, extensions=griffe.load_extensions(Readable)
    ) as package:
        function = package["f"]
        assert str(function.parameters["a"].annotation) == "Float[Tensor, 'batch *time'] | None"
        assert str(function.parameters["b"].annotation) == "Int[Tensor, 'x y']"
        assert str(function.returns) == "Float[Tensor, 'batch *time']"
