from __future__ import annotations

from pathlib import Path

import pytest

import sih
from sih.cli import main


@pytest.mark.slow
def test_circuits_are_written_measured_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(
            [
                "benchmark",
                "circuits",
                "--out",
                str(tmp_path),
                "--circuits",
                "1.2-two-lags",
                "--pairs",
                "1",
            ]
        )
        == 0
    )
    assert "exact: area" in capsys.readouterr().out
    assert list(sih.load_circuits(tmp_path / "circuits")) == ["1.2-two-lags"]
    rows = (tmp_path / "results.csv").read_text().splitlines()
    assert len(rows) == 6
    assert rows[0].startswith("circuit,method,area")
    assert (tmp_path / "discovery.png").stat().st_size > 1000


def test_wrong_flags_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for flags, message in (
        (["--circuits", "best"], "circuits must be one of"),
        (["--pairs", "0"], "at least 1"),
    ):
        assert main(["benchmark", "circuits", "--out", str(tmp_path / "x"), *flags]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "x").exists()
