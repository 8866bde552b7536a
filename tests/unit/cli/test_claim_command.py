"""`sih claim` from the outside."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import sih
from sih.claim import monte_carlo as monte_carlo_module
from sih.claim.exact import claim_table
from sih.claim.monte_carlo import random_matrices
from sih.cli import claim_command as claim_module
from sih.cli import main

MANY = ["claim", "--states", "3", "--matrices", "5", "--lags", "1", "2", "4"]


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
    words = [
        "claim",
        "--matrix",
        str(tmp_path / "P.csv"),
        "--lags",
        "1",
        "2",
        "--rational",
        "--no-figures",
    ]
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
    whole, parts = (
        json.loads((tmp_path / name / "claim.json").read_text()) for name in ("whole", "parts")
    )
    assert whole["monte_carlo"] == parts["monte_carlo"]
    assert whole["monte_carlo"]["matrices"] == 5
    assert whole["monte_carlo"]["largest_deviation_in_standard_errors"] < 6


def test_every_pair_has_a_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Four states, as three would be proven; the gap of an open pair is that of the worst matrix."""
    words = ["claim", "--states", "4", "--matrices", "5", "--lags", "1", "2", "3", "--no-figures"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    record = json.loads((tmp_path / "claim.json").read_text())
    pairs = {(pair["true_lag"], pair["rival"]): pair for pair in record["pairs"]}
    assert {key: pair["status"] for key, pair in pairs.items()} == sih.claim_status((1, 2, 3))
    P = random_matrices(4, 5, seed=0)
    least = claim_table(P, (1, 2, 3)).gaps.amin(dim=0)
    assert pairs[1, 3]["gap_at_least"] == pytest.approx(least[0, 2].item(), abs=1e-9)
    assert pairs[1, 3]["gap_at_least"] < least[0, 2].item()
    assert f"open, gap at least {pairs[1, 3]['gap_at_least']:.6f} by computation" in shown
    assert "proven: Lemma T" in shown
    assert "5 of 6 pairs of true lag and rival are theorems" in shown


def test_matrices_of_uniform_numbers(tmp_path: Path) -> None:
    words = [
        *MANY,
        "--no-figures",
        "--matrix-law",
        "uniform",
        "--monte-carlo",
        "trimmed",
        "--sequences",
        "200",
    ]
    assert main([*words, "--out", str(tmp_path)]) == 0
    record = json.loads((tmp_path / "claim.json").read_text())
    table = claim_table(random_matrices(3, 5, seed=0, law="uniform"), (1, 2, 4))
    assert torch.tensor(record["margins"]).allclose(table.margins.float())
    assert record["monte_carlo"]["largest_deviation_in_standard_errors"] < 6
    assert (record["matrix_law"], record["concentration"]) == ("uniform", 1.0)


def test_a_law_does_not_go_with_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "P.csv").write_text("0.5,0.5\n0.25,0.75\n")
    words = [
        "claim",
        "--matrix",
        str(tmp_path / "P.csv"),
        "--lags",
        "1",
        "2",
        "--matrix-law",
        "uniform",
    ]
    assert main([*words, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert (
        error
        == "sih: --matrix-law: a matrix of a file is not drawn; leave out --matrix or --matrix-law uniform\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["claim", "--lags", "3", "1"], "increasing"),
        (["claim", "--lags", "3"], "at least 2 lags"),
        (["claim", "--matrix", "nowhere.csv"], "there is no file nowhere.csv"),
        (["claim", "--states", "1"], "at least 2 states"),
        (["claim", "--matrices", "0"], "matrices must be a whole number, at least 1"),
        (["claim", "--matrix-law", "round"], "--matrix-law"),
        (
            ["claim", "--matrix-law", "uniform", "--concentration", "2"],
            "the law uniform has no concentration",
        ),
        (["claim", "--rational"], "give it with --matrix"),
        (["claim", "--tolerance", "0"], "between 1e-13 and 0.1"),
        (["claim", "--monte-carlo", "other"], "monte"),
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
    assert main(["claim", "--help"]) == 0
    assert "sih claim --" in " ".join(capsys.readouterr().out.split())
