"""`sih claim search` from the outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sih.claim import search as search_module
from sih.cli import claim_search_command as command
from sih.cli import main

SEARCH = [
    "claim",
    "search",
    "--states",
    "3",
    "--sizes",
    "3",
    "--max-lag",
    "4",
    "--starts",
    "2",
    "--steps",
    "2",
]


def test_search_stops_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "whole")]) == 0
    real = search_module.rounds

    def interrupted(*arguments: Any) -> Iterator[Any]:
        yield next(real(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "rounds", interrupted)
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "parts")]) == 130
    assert "the same command resumes" in capsys.readouterr().err
    monkeypatch.setattr(command, "rounds", real)
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "parts")]) == 0
    for name in ("search.json", "worst.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert "the worst: sih claim --matrix" in capsys.readouterr().out
    assert main([*SEARCH, "--seed", "1", "--out", str(tmp_path / "whole")]) == 2
    assert "other settings" in capsys.readouterr().err


def test_search_violates_a_false_statement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main([*SEARCH, "--descents", "2", "--statement", "wrong-lag", "--out", str(tmp_path)]) == 1
    )
    assert "violated" in capsys.readouterr().out


def test_the_worst_case_can_be_loaded(tmp_path: Path) -> None:
    assert main([*SEARCH, "--descents", "2", "--out", str(tmp_path)]) == 0
    worst = next(iter(json.loads((tmp_path / "search.json").read_text())["worst"].values()))
    lags = [str(lag) for lag in worst["lags"]]
    matrix = str(tmp_path / "worst.csv")
    assert (
        main(["claim", "--matrix", matrix, "--lags", *lags, "--no-figures", "--out", str(tmp_path)])
        == 0
    )
    record = json.loads((tmp_path / "claim.json").read_text())
    assert np.array(record["P"]) == pytest.approx(np.array(worst["P"]), abs=1e-15)


def test_only_open_pairs_of_symmetric_matrices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        *SEARCH[:2],
        "--states",
        "4",
        "--lags",
        "1",
        "2",
        "4",
        "--starts",
        "2",
        "--steps",
        "2",
        "--open-only",
    ]
    more = [
        "--family",
        "symmetric",
        "--begin",
        "tree",
        "rotation",
        "--descents",
        "4",
        "--out",
        str(tmp_path),
    ]
    assert main([*words, *more]) == 0
    worst = next(iter(json.loads((tmp_path / "search.json").read_text())["worst"].values()))
    assert worst["true_lag"] == 1
    assert np.array(worst["P"]) == pytest.approx(np.array(worst["P"]).T)
    assert main([*words, *more, "--begin", "tree"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claim", "search", "--out", "x", "--sizes", "40"], "from 2 to max_lag=12"),
        (["claim", "search"], "out"),
        (
            ["claim", "search", "--out", "x", "--open-only", "--lags", "3", "5", "7"],
            "no pair of lags",
        ),
        (
            ["claim", "search", "--out", "x", "--open-only", "--statement", "wrong-lag"],
            "leave out the statement",
        ),
        (["claim", "search", "--out", "x", "--family", "other"], "family"),
        (["claim", "search", "--out", "x", "--begin"], "begin"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claim", "search", "--help"]) == 0
    assert "sih claim search --" in " ".join(capsys.readouterr().out.split())
