from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support.findings import PAPER, number_of
from unit.cli.conftest import Experiments

from sih.cli import main
from sih.report.page import number
from sih.results.figure import shown
from sih.results.pictures import make
from sih.training.runs.run_store import RunStore


def test_one_figure(few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "heads", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "head-range (Sec. 5.4): 0 lag sets -> holds" in said
    for ending in ("pdf", "svg", "png"):
        assert (tmp_path / "figures" / f"heads.{ending}").exists()
    assert json.loads((tmp_path / "data" / "heads.json").read_bytes())["name"] == "heads"
    assert main(["figure", "heads", "--out", str(tmp_path)]) == 0
    assert "kept" in capsys.readouterr().out


def test_names(few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["figure", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(few)
    for words in (["figure", "haeds"], ["figure"]):
        assert main([*words, "--out", str(tmp_path / "none")]) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert "claim_histogram, heads, recipes" in complaint
    assert main(["figure", "recipes", "--out", str(tmp_path / "none")]) == 2
    assert "needs standard-1.9, not trained yet; `sih reproduce --train`" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_seed_is_handed_on(few: Experiments, tmp_path: Path) -> None:
    assert main(["figure", "claim_histogram", "--seed", "5", "--out", str(tmp_path)]) == 0
    assert (
        json.loads((tmp_path / "data" / "claim_histogram.json").read_bytes())["config"]["seed"] == 5
    )


@pytest.mark.slow
@pytest.mark.parametrize("id", ["prop-1", "claim-1", "head-range", "cumulative-25-states"])
def test_the_command_of_a_statement_makes_its_number(
    id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    statement = next(one for one in PAPER if one.id == id)
    words = shlex.split(statement.command)
    assert words[0] == "sih"
    assert main(words[1:]) == 0
    said = capsys.readouterr().out
    result = make(shown(statement.experiment), Path("out"), RunStore()).result
    assert (
        f"{id} ({statement.section}): {number(number_of(statement.judge(result.data)).value)}"
        in said
    )
