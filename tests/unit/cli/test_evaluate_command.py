from __future__ import annotations

from pathlib import Path

import pytest
from support.small_runs import make

from sih.cli import main
from sih.training.runs.run_store import open_run


def test_what_can_not_be_evaluated_is_said_before_anything_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "half", stop_after=3)
    for words, said in (
        ([], "name a run's folder or a shipped model"),
        (["paper-1.2.3-length32", str(tmp_path / "half")], "is not finished"),
        (["nowhere"], "there is no run 'nowhere'"),
    ):
        assert main(["runs", "evaluate", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err


def test_a_file_is_written_where_it_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "run")
    before = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert main(["runs", "evaluate", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == before
    assert main(["runs", "evaluate", "--keep", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out == said
    found = open_run(tmp_path / "run").evaluation
    assert found is not None
    assert said.startswith(
        f"run: KL/ML {found.kl_over_ml.with_error()} on {found.sequences:,} fresh sequences"
    )
    assert f"4-8: {found.windows[0].kl_over_ml.with_error()}, 9-11: " in said
