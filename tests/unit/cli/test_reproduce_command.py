from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from support.findings import MORE, OURS, PAPER
from unit.cli.conftest import Experiments, show_only

from sih.cli import main
from sih.paper import heads as head_counts
from sih.training.runs.run_store import RunStore


def test_all_and_again(
    few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reproduce", "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(words) == 0
    first = capsys.readouterr()
    assert "2 figures" in first.out
    assert "2 of them computed now" in first.out
    assert "not made: recipes (needs standard-1.9, not trained yet)" in first.out
    assert "models not trained yet: standard-1.9" in first.out
    assert "figures: 3 of 3" in first.err
    report = json.loads((tmp_path / "out" / "report.json").read_bytes())
    assert [one["id"] for one in report] == [statement.id for statement in PAPER + OURS]
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    assert main(words) == 0
    assert "0 of them computed now" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before


def test_what_goes_beyond_the_paper_is_made_when_asked_for(
    few: Experiments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_only({"heads": dataclasses.replace(few["heads"], beyond=True)}, monkeypatch)
    words = ["reproduce", "--out", str(tmp_path), "--jobs", "1"]
    for more, files, statements in (([], 0, PAPER + OURS), (["--all"], 1, PAPER + OURS + MORE)):
        assert main([*words, *more]) == 0
        assert len(list(tmp_path.glob("figures/*.png"))) == files
        report = json.loads((tmp_path / "report.json").read_bytes())
        assert [one["id"] for one in report] == [statement.id for statement in statements]


def test_stopped_and_gone_on_with(
    few: Experiments,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["reproduce", "--out", str(tmp_path), "--jobs", "1"]
    with monkeypatch.context() as patch:
        show_only({**few, "heads": dataclasses.replace(few["heads"], compute=_stop)}, patch)
        assert main(words) == 130
        assert "the same command resumes it" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
    assert main(words) == 0
    assert "1 of them computed now" in capsys.readouterr().out


def _stop(config: head_counts.HeadCountsConfig, store: RunStore) -> head_counts.HeadCounts:
    raise KeyboardInterrupt


def test_the_report_of_another_seed_has_a_folder_of_its_own(
    few: Experiments, tmp_path: Path
) -> None:
    words = ["reproduce", "--out", str(tmp_path), "--jobs", "1"]
    assert main(words) == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert main([*words, "--seed", "5"]) == 0
    assert {path: path.read_bytes() for path in before} == before
    data = json.loads((tmp_path / "seed-5" / "data" / "claim_histogram.json").read_bytes())
    assert data["config"]["seed"] == 5
    assert (tmp_path / "seed-5" / "report.html").exists()


def test_bad_input(few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--jobs", "0", "--out", str(tmp_path)]) == 2
    assert "--jobs is a whole number, at least 1; got 0" in capsys.readouterr().err
