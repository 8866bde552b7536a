from __future__ import annotations

import sys

import pytest

from sih.cli import printing
from sih.cli.printing import fits, plain_console, table_of, track


@pytest.mark.parametrize(
    "text", ["[/red]", "[bold]x[/bold]", ":smile:", "runs/[0, 1]/a" + "b" * 300]
)
def test_what_is_given_is_printed(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain_console().print(f"-> {text}")
    assert capsys.readouterr().out == f"-> {text}\n"


def test_a_table_has_its_first_columns_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    plain_console(80).print(table_of([["name", "number"], ["a", "1"], ["[b]", "22"]], "a title"))
    title, _, header, _, first, second, _ = capsys.readouterr().out.splitlines()
    assert (title.strip(), header.split()) == ("a title", ["┃", "name", "┃", "number", "┃"])
    assert (first, second) == ("│ a    │      1 │", "│ [b]  │     22 │")


def test_a_table_fits_if_no_word_of_it_must_be_broken() -> None:
    rows = [["name", "a number"], ["a", "1"]]
    assert [fits(table_of(rows), plain_console(width)) for width in (16, 17, 80)] == [
        False,
        True,
        True,
    ]
    assert not fits(table_of([["column"] * 21]), plain_console(80))


def test_elsewhere_than_on_a_terminal_it_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(track("abc", 5, "letters", done=2)) == ["a", "b", "c"]
    assert capsys.readouterr().err == "letters: 5 of 5, about 0 s left\n"
    monkeypatch.setattr(printing, "SECONDS_A_LINE", 0.0)
    assert len(list(track(range(2), 3, "numbers"))) == 2
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "numbers: 1 of 3",
        "numbers: 2 of 3",
    ]


def test_on_a_terminal_it_is_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(track("ab", 2, "letters")) == ["a", "b"]
    said = capsys.readouterr()
    assert said.out == ""
    assert "letters" in said.err
    assert "2/2" in said.err
