from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.small_runs import SHORT, make

import sih
from sih.cli import main
from sih.training.runs.run_names import run_name
from sih.training.runs.run_store import SHIPPED, open_run


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


def test_show_writes_only_with_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["runs", "show", "standard-1.2.3-seed1"]) == 0
    assert not list(tmp_path.iterdir())
    out = capsys.readouterr().out
    found = json.loads((SHIPPED / "standard-1.2.3-seed1" / "evaluation.json").read_text())
    late = found["windows"][-1][
        "kl_over_ml"
    ]  # where ML hardly errs, a ratio that is known to a half
    for said in (
        "standard-1.2.3-seed1: standard, lags [1, 2, 3], heads [1, 3, 1], length 128, seed 1",
        "trained by: SOAP, harmonic start, ",
        "command: sih train --preset auto --lags 1 2 3 --heads 1 3 1 --length 128 --seed 1 --evaluate-every 100\n",
        f"on {found['sequences']:,} fresh sequences: KL/ML {found['kl_over_ml'][0]:.4f} ± ",
        f", 65-127 tokens {late[0]:.0f} ± {2 * late[1]:.0f}\n",
        "on the 512 held-out sequences of training: KL/ML 0.78 (KL 0.0097, ML 0.0123, BMA 0.0072)",
    ):
        assert said in out


def test_show_reads_heads_as_diagnose_does(capsys: pytest.CaptureFixture[str]) -> None:
    """The table printed is that of the Python call that is printed above it."""
    assert main(["runs", "show", "paper-1.2.3-length32"]) == 0
    title, *lines = capsys.readouterr().out.splitlines()[-7:]
    assert title.startswith(
        "heads on 512 sequences, queries 3 to 30, as by sih.diagnose(run.task, "
    )
    call = title.split("as by ")[1].removesuffix(":")
    found = eval(call, {"sih": sih, "run": sih.open_run("paper-1.2.3-length32")})
    assert lines == repr(found).splitlines()[:6]


def test_the_held_out_ratio_and_the_fresh_one_have_columns_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "runs" / "a")
    make(tmp_path / "runs" / "b")
    assert main(["runs", str(tmp_path / "runs")]) == 0
    header = capsys.readouterr().out.splitlines()[2].split()
    assert header[-5:] == ["loss", "KL", "ML", "BMA", "held-out"]
    assert main(["runs", "evaluate", "--keep", str(tmp_path / "runs" / "b")]) == 0
    assert "b: KL/ML " in capsys.readouterr().out
    found = open_run(tmp_path / "runs" / "b").evaluation
    assert found is not None
    assert main(["runs", str(tmp_path / "runs")]) == 0
    _, _, header_line, a, b, *_ = capsys.readouterr().out.splitlines()
    assert header_line.split()[-3:] == ["held-out", "KL/ML", "±"]
    ratio = found.kl_over_ml
    assert b.split()[-2:] == [f"{ratio.mean:.3f}", f"{2 * ratio.error:.3f}"]
    assert a.split()[-1] == f"{open_run(tmp_path / 'runs' / 'a').held_out_kl_over_ml:.2f}"
    assert not (tmp_path / "runs" / "a" / "evaluation.json").exists()
