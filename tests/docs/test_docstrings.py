"""Docstrings become Markdown (run by `make docs`, which has the packages)."""

from __future__ import annotations

import griffe

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


def test_two_brackets_in_prose_are_no_link() -> None:
    assert readable("Where [a] [b] and c[d][e] are.") == "Where [a] \\[b] and c[d]\\[e] are."


def test_a_modules_proof_stays_as_typed_unless_it_has_formulas() -> None:
    assert readable("A lemma.\n\na <= b\n  * c", module=True) == "A lemma.\n\n```text\na <= b\n  * c\n```"
    assert readable("A lemma.\n\n$a \\le b$", module=True) == "A lemma.\n\n$a \\le b$"


def test_shapes_stay_strings() -> None:
    code = 'def f(a: Float[Tensor, "batch *time"] | None, b: Int[Tensor, "x y"]) -> Float[Tensor, "batch *time"]: ...'
    files = {"__init__.py": code}
    with griffe.temporary_visited_package("package", files, extensions=griffe.load_extensions(Readable)) as package:
        function = package["f"]
        assert str(function.parameters["a"].annotation) == "Float[Tensor, 'batch *time'] | None"
        assert str(function.parameters["b"].annotation) == "Int[Tensor, 'x y']"
        assert str(function.returns) == "Float[Tensor, 'batch *time']"
