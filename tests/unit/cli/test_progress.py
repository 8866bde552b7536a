from __future__ import annotations

import sys

import pytest

from sih.cli import progress
from sih.cli.progress import track


def test_elsewhere_than_on_a_terminal_it_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(track("abc", 5, "letters", done=2)) == ["a", "b", "c"]
    assert capsys.readouterr().err == "letters: 5 of 5, about 0 s left\n"
    monkeypatch.setattr(progress, "SECONDS_A_LINE", 0.0)
    assert len(list(track(range(2), 3, "numbers"))) == 2
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "numbers: 1 of 3",
        "numbers: 2 of 3",
    ]


def test_on_a_terminal_it_is_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert list(track("ab", 2, "letters")) == ["a", "b"]
    said = capsys.readouterr()
    assert said.out == ""
    assert "letters" in said.err
    assert "2/2" in said.err
