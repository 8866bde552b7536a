from __future__ import annotations

from pathlib import Path

import pytest
from support.kept_runs import make_kept, with_circuit
from support.small_runs import make

from sih.cli import main
from sih.training.runs.formation import FORMATION


def test_it_is_printed_and_kept_where_asked_and_shown_with_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = with_circuit(tmp_path / "run", (16, 24))
    words = ["runs", "formation", str(run.folder)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said.startswith("run: copying ")
    assert (
        "a selective head at step 16, the circuit at step 16 (at 3 measured steps, 8 to 24; 128 seq"
        in said
    )
    assert not (run.folder / FORMATION).exists()
    assert main(["runs", "show", str(run.folder)]) == 0
    assert "formation: " not in capsys.readouterr().out
    assert main([*words, "--keep"]) == 0
    assert capsys.readouterr().out == said
    assert (run.folder / FORMATION).exists()
    assert main(["runs", "show", str(run.folder)]) == 0
    assert f"formation: {said.removeprefix('run: ')}" in capsys.readouterr().out


def test_what_shows_no_formation_is_said_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "none")
    make_kept(tmp_path / "half", stop_after=10)
    for words, said in (
        ([], "name a run's folder"),
        (
            [str(tmp_path / "none")],
            "kept no weights along the way; `sih train --keep-every N` keeps them",
        ),
        ([str(tmp_path / "half"), "--keep"], "half is not finished"),
        (["paper-1.2.3-length32"], "kept no weights"),
    ):
        assert main(["runs", "formation", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert said in err
    assert main(["runs", "formation", str(tmp_path / "half")]) == 0
    assert "(at 1 measured steps, 8 to 8;" in capsys.readouterr().out
