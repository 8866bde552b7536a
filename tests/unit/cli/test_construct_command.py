from __future__ import annotations

import json
from pathlib import Path

import pytest

from sih.cli import main

SMALL = ["construct", "--lags", "1", "2", "--states", "3", "--length", "24"]


def test_a_circuit_is_written_checked_and_verified_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert {entry["site"] for entry in found["comparisons"]} >= {
        "1.1/attention",
        "3.1/attention",
        "output",
    }


def test_the_table_shows_every_strength(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL, "--target", "bayes", "--table", "--out", str(tmp_path / "a")]) == 0
    assert "refused: lam too small" in capsys.readouterr().out
    assert main([*SMALL, "--table", "--out", str(tmp_path / "b")]) == 0
    assert "1000" in capsys.readouterr().out


def test_any_parents_are_read_from_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = [
        [-1, 0, 1, 2, 3, 4, 5, 6, 7],
        [-1, 0, 0, 1, 2, 3, 4, 5, 6],
        [-1, 0, 0, 0, 1, 1, 2, 2, 2],
    ]
    (tmp_path / "t.json").write_text(json.dumps(table))
    (tmp_path / "t.csv").write_text("\n".join(",".join(map(str, row)) for row in table))
    said = []
    for name in ("t.json", "t.csv"):
        out = str(tmp_path / "circuit")
        assert (
            main(
                [
                    "construct",
                    "--states",
                    "3",
                    "--parents",
                    str(tmp_path / name),
                    "--third",
                    "slots",
                    "--out",
                    out,
                ]
            )
            == 0
        )
        assert main(["verify", out]) == 0
        said.append(capsys.readouterr().out)
    assert (
        "the circuit 'paper' for a table of parents."
        in (tmp_path / "circuit" / "README.md").read_text()
    )
    assert said[0] == said[1]
    assert "3 hypotheses, target paper, third layer by slots: 1 + " in said[0]
    assert "the circuit holds" in said[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[[-1, 0, 1], [-1, 0, 2]]", "is no table of parents: a parent comes before its child"),
        ("[[-1, 0, 1], [-1]]", "is no table of parents: "),
        ("{}", "is no table of parents: "),
        ("[[-1, 0.5, 1]]", "is no table of parents: parents is a row for each hypothesis"),
        ("[[-1, 0, 1, 0], [-1, -1, 0, 1]]", "--parents: token 1 has no parent under hypothesis 1"),
        ("[[-1, 0", "is no table of parents: "),
    ],
)
def test_a_bad_table_is_one_line(
    content: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.json"
    path.write_text(content)
    others = [[str(tmp_path / "none.csv")], [str(tmp_path / "t.txt")], [str(path), "--lags", "1"]]
    for words in ([str(path)], *others):
        assert (
            main(["construct", "--states", "2", "--parents", *words, "--out", str(tmp_path / "c")])
            == 2
        )
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert words != [str(path)] or message in error
    assert list(tmp_path.iterdir()) == [path]


BAD = {
    "option of another circuit": (
        ["--target", "bayes", "--beta", "3"],
        "--beta: the circuit 'bayes' has no option",
    ),
    "lam": (["--lam", "5"], "--lam: lam=5 is too small"),
    "target": (["--target", "magic"], "Expected one of"),
    "length": (["--length", "3", "--lags", "1", "2"], "--length: length 3 is too short"),
    "heads": (["--heads", "0"], "--heads: heads must be a whole number"),
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
