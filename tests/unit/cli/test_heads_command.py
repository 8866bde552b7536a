from __future__ import annotations

import json
from pathlib import Path

import pytest

from sih.cli import main


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "answer.json"
    assert main(["heads", "--lags", "1", "2", "4", "8", "--check", "--out", str(out)]) == 0
    text = capsys.readouterr().out
    assert "5 heads, and no fewer" in text
    assert "0, 1, 2, 3, 4 differ by differences of two lags" in text
    assert "0 1 2 3 4" in text
    assert "pattern holds, proof holds" in text
    record = json.loads(out.read_text())
    assert (record["heads"], record["exact"], record["colours"]) == (5, True, [0, 1, 2, 3, 4])
    assert record["relative"] == {"heads": 1, "layers": [1, 1, 1], "reach": 9}


@pytest.mark.parametrize("lags", ["1 2 3", "1 3 4", "3 5 7", "1 2 4 8", "1 2 3 4 5"])
def test_command_says_both_numbers_and_why_they_differ(
    lags: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["heads", "--lags", *lags.split()]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"lags {', '.join(lags.split())}, absolute positions: " in text
    assert "relative positions: 1 head in every layer is exact, for any lags" in text
    assert "why they differ: a key that says where it stands" in text


def test_command_with_fewer_heads(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", "--lags", "1", "2", "3", "--heads", "1"]) == 0
    text = capsys.readouterr().out
    assert "with 1 head: 1/3 of the transitions are used, the most possible" in text
    assert "0 . ." in text


def test_command_explains_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    for lags, reason in (
        ("7", "nothing to mix with"),
        ("1 2 5 12", "one head can take at most"),
        ("1 4 9", "was tried, and mixes"),
    ):
        assert main(["heads", "--lags", *lags.split()]) == 0
        assert reason in capsys.readouterr().out


def test_command_states_a_bracket(capsys: pytest.CaptureFixture[str]) -> None:
    lags = "2 6 12 15 36 38 39 41 52 58 59 61"
    assert main(["heads", "--lags", *lags.split(), "--time-limit", "0.05"]) == 0
    assert "not settled in the 0.05 s allowed" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["--lags", "1", "1"],
        ["--lags", "a"],
        [],
        ["--lags", "1", "2", "--draw", "x.gif"],
        ["--lags", "1", "2", "--heads", "0"],
    ],
)
def test_command_refuses_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["heads", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sih: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_command_draws(suffix: str, tmp_path: Path) -> None:
    target = tmp_path / f"pattern.{suffix}"
    assert main(["heads", "--lags", "1", "3", "--draw", str(target)]) == 0
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert target.read_bytes().startswith(magic[suffix])
