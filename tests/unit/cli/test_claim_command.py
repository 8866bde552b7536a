"""`sih claim` and `sih claim search` from the outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sih.cli import claim_command as claim_module
from sih.cli import main
from sih.theory import monte_carlo as monte_carlo_module
from sih.theory import search as search_module

MANY = ["claim", "--states", "3", "--matrices", "5", "--lags", "1", "2", "4"]
SEARCH = ["claim", "search", "--states", "3", "--sizes", "3", "--max-lag", "4", "--starts", "2", "--steps", "2"]


def test_many_matrices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*MANY, "--out", str(tmp_path)]) == 0
    assert "Claim 1 holds here" in capsys.readouterr().out
    record = json.loads((tmp_path / "claim.json").read_text())
    assert record["holds"]
    assert len(record["margins"]) == 5
    assert record["smallest_margin"]["gap"] == min(min(row) for row in record["margins"])
    for name in ("claim_histogram", "claim_expectations", "claim_cumulative"):
        for ending in ("pdf", "svg", "png"):
            assert (tmp_path / f"{name}.{ending}").stat().st_size > 1000


def test_one_matrix_and_its_fractions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "P.csv").write_text("0.5,0.5\n0.25,0.75\n")
    words = ["claim", "--matrix", str(tmp_path / "P.csv"), "--lags", "1", "2", "--rational", "--no-figures"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "claim.json").read_text())
    assert record["P"] == [[0.5, 0.5], [0.25, 0.75]]
    exact = [int(a) / int(b) for a, b in (x.split("/") for x in record["rational_margins"])]
    assert exact == pytest.approx(record["margins"][0], abs=1e-10)
    assert "off" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize("form", ["trimmed", "printed"])
def test_monte_carlo_stops_and_goes_on(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*MANY, "--monte-carlo", form, "--sequences", "60", "--length", "12", "--no-figures"]
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    real = monte_carlo_module.estimates

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for n, estimate in enumerate(real(*arguments)):
            if n == 2:
                raise KeyboardInterrupt
            yield estimate

    monkeypatch.setattr(claim_module, "estimates", interrupted)
    assert main([*words, "--out", str(tmp_path / "parts")]) == 130
    assert "2 matrices done" in capsys.readouterr().err
    monkeypatch.setattr(claim_module, "estimates", real)
    assert main([*words, "--out", str(tmp_path / "parts")]) == 0
    whole, parts = (json.loads((tmp_path / name / "claim.json").read_text()) for name in ("whole", "parts"))
    assert whole["monte_carlo"] == parts["monte_carlo"]
    assert whole["monte_carlo"]["matrices"] == 5
    assert whole["monte_carlo"]["largest_deviation_in_standard_errors"] < 6


def test_search_stops_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "whole")]) == 0
    real = search_module.rounds

    def interrupted(*arguments: Any) -> Iterator[Any]:
        yield next(real(*arguments))
        raise KeyboardInterrupt

    monkeypatch.setattr(claim_module, "rounds", interrupted)
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "parts")]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    monkeypatch.setattr(claim_module, "rounds", real)
    assert main([*SEARCH, "--descents", "6", "--out", str(tmp_path / "parts")]) == 0
    for name in ("search.json", "worst.csv"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()
    assert "the worst: sih claim --matrix" in capsys.readouterr().out
    assert main([*SEARCH, "--seed", "1", "--out", str(tmp_path / "whole")]) == 2
    assert "other settings" in capsys.readouterr().err


def test_search_violates_a_false_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, "--descents", "2", "--statement", "wrong-lag", "--out", str(tmp_path)]) == 1
    assert "violated" in capsys.readouterr().out


def test_the_worst_case_can_be_loaded(tmp_path: Path) -> None:
    assert main([*SEARCH, "--descents", "2", "--out", str(tmp_path)]) == 0
    worst = next(iter(json.loads((tmp_path / "search.json").read_text())["worst"].values()))
    lags = [str(lag) for lag in worst["lags"]]
    matrix = str(tmp_path / "worst.csv")
    assert main(["claim", "--matrix", matrix, "--lags", *lags, "--no-figures", "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "claim.json").read_text())
    assert np.array(record["P"]) == pytest.approx(np.array(worst["P"]), abs=1e-15)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claim", "--lags", "3", "1"], "increasing"),
        (["claim", "--lags", "3"], "at least 2 lags"),
        (["claim", "--matrix", "nowhere.csv"], "there is no file nowhere.csv"),
        (["claim", "--states", "1"], "at least 2 states"),
        (["claim", "--matrices", "0"], "matrices must be at least 1"),
        (["claim", "--rational"], "give it with --matrix"),
        (["claim", "--tolerance", "0"], "between 1e-13 and 0.1"),
        (["claim", "--monte-carlo", "other"], "monte"),
        (["claim", "search", "--out", "x", "--sizes", "40"], "from 2 to max_lag=12"),
        (["claim", "search"], "out"),
    ],
)
def test_bad_input_is_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("words", [["claim"], ["claim", "search"]])
def test_help_has_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--help"]) == 0
    assert f"sih {' '.join(words)} --" in " ".join(capsys.readouterr().out.split())
