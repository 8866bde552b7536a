from __future__ import annotations

from pathlib import Path

import pytest

from sih.cli import main


def test_rates_and_beta(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--states", "3", "--lags", "1", "2", "--out", str(tmp_path)]
    assert (
        main(["claim", "rates", *small, "--length", "20", "--blocks", "2", "--sequences", "500"])
        == 0
    )
    assert (
        main(
            ["claim", "beta", *small, "--lengths", "6", "9", "--matrices", "2", "--sequences", "20"]
        )
        == 0
    )
    assert "single head" in capsys.readouterr().out
    for name in ("wrong_lag", "beta"):
        assert {path.suffix for path in tmp_path.glob(f"{name}.*")} == {
            ".json",
            ".pdf",
            ".svg",
            ".png",
        }
    for words in (
        ["rates", "--blocks", "1"],
        ["rates", "--states", "50"],
        ["beta", "--lengths", "3"],
    ):
        assert main(["claim", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1
