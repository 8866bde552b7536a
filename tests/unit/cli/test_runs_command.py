from __future__ import annotations

from pathlib import Path

import pytest
from support.small_runs import SHORT, make

from sih.cli import main
from sih.runs.run_names import run_name


def test_runs_are_listed_shown_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    make(tmp_path / "runs" / "a")
    make(tmp_path / "runs" / run_name(SHORT), stop_after=3)
    assert main(["runs"]) == 0
    out = capsys.readouterr().out
    assert run_name(SHORT)[:20] in out
    assert "of 24" in out  # the unfinished one
    assert main(["runs", "show", "runs/a", "--out", "figure"]) == 0
    assert (tmp_path / "figure.png").exists()
    assert main(["runs", "rm", "runs/a"]) == 2
    assert "needs a yes" in capsys.readouterr().err
    assert (tmp_path / "runs/a").exists()
    assert main(["runs", "rm", "runs/a", "--yes"]) == 0
    assert not (tmp_path / "runs/a").exists()


def test_a_bad_neighbour_hides_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path / "good")
    for name, file, content in (("bad", "environment.json", "1"), ("worse", "config.json", "{")):
        make(tmp_path / name, stop_after=2)
        (tmp_path / name / file).write_text(content)
    assert main(["runs", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "good" in out
    assert err.count("\n") == 2
    assert "bad/environment.json" in err
    assert "worse/config.json" in err
