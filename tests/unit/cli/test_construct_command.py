from __future__ import annotations

import json
from pathlib import Path

import pytest

from sih.cli import main

SMALL = ["construct", "--lags", "1", "2", "--states", "3", "--length", "24"]


def test_a_circuit_is_written_checked_and_verified_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "circuit")
    assert main([*SMALL, "--target", "bayes", "--out", out]) == 0
    assert "the circuit holds" in capsys.readouterr().out
    assert main(["verify", out, "--out", str(tmp_path / "found.json")]) == 0
    said = capsys.readouterr().out
    assert "target bayes, third layer by position" in said
    assert "2.1/1.1/position" in said
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["ok"]
    assert found["posterior_error"] <= found["bound"]
    assert {entry["site"] for entry in found["comparisons"]} >= {"1.1/attention", "3.1/attention", "output"}


def test_the_table_shows_every_strength(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--target", "bayes", "--table", "--out", str(tmp_path / "a")]) == 0
    assert "refused: lam too small" in capsys.readouterr().out
    assert main([*SMALL, "--table", "--out", str(tmp_path / "b")]) == 0
    assert "1000" in capsys.readouterr().out


BAD = {
    "option of another circuit": (["--target", "bayes", "--beta", "3"], "--beta: the circuit 'bayes' has no option"),
    "lam": (["--lam", "5"], "--lam: lam=5 is too small"),
    "target": (["--target", "magic"], "Expected one of"),
    "length": (["--length", "3", "--lags", "1", "2"], "--length: length 3 is too short"),
    "heads": (["--heads", "0"], "--heads: heads is a number"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_its_flag_and_writes_nothing(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words, message = BAD[case]
    assert main([*SMALL, *words, "--out", str(tmp_path / "circuit")]) == 2
    error = capsys.readouterr().err
    assert error.startswith("sih: ")
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_version_0_1_is_believed_in_its_choices_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It called the pattern `colours`, and held bounds and tolerances of its own."""
    out = tmp_path / "circuit"
    assert main([*SMALL, "--out", str(out)]) == 0
    notes, path = json.loads((out / "notes.json").read_text()), out / "certificate.json"
    (out / "notes.json").unlink()
    circuit = notes["circuit"]
    circuit["colours"] = circuit.pop("head_of_offset")
    circuit |= {"heads": 2, "bound": 0.5, "rounding": 0.5}
    path.write_text(json.dumps({**notes, "verification": {}}))
    capsys.readouterr()
    assert main(["verify", str(out), "--out", str(tmp_path / "found.json")]) == 0
    assert json.loads((tmp_path / "found.json").read_text())["tolerance"] < 1e-8
    circuit["beta"] = 50.0
    path.write_text(json.dumps(notes))
    assert main(["verify", str(out)]) == 1
    path.write_text(json.dumps({"circuit": {}}))
    capsys.readouterr()
    assert main(["verify", str(out)]) == 2
    assert f"{path} is no certificate" in capsys.readouterr().err
    path.unlink()
    assert main(["verify", str(out)]) == 2
    assert "`sih construct` writes the notes" in capsys.readouterr().err
