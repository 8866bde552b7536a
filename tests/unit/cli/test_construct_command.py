from __future__ import annotations

import json
from pathlib import Path

import pytest

import sih
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


RELATIVE = [
    "construct",
    "--kind",
    "relative",
    "--lags",
    "1",
    "3",
    "--states",
    "3",
    "--length",
    "24",
]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--target", "bayes"],
        ["--form", "standard"],
        ["--target", "bayes", "--form", "standard"],
    ],
    ids=" ".join,
)
def test_relative_positions_at_any_length(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "circuit")
    assert main([*RELATIVE, *words, "--out", out]) == 0
    said = capsys.readouterr().out
    assert "relative positions" in said
    assert "the circuit holds" in said
    assert main(["verify", out]) == 0
    found = str(tmp_path / "found.json")
    assert main(["verify", out, "--length", "70", "--size", "4", "--out", found]) == 0
    assert "offsets up to 4, any length" in capsys.readouterr().out
    record = json.loads(Path(found).read_text())
    assert record["ok"]
    last = next(each for each in record["comparisons"] if each["site"] == "output")
    assert last["first"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--form", "wide"], "form"),
        (["--heads", "2"], "--heads: the circuit 'paper' has no option 'heads'"),
        (["--third", "mask"], "--third: the circuit 'paper' has no option 'third'"),
        (["--target", "bayes", "--reading", "both"], "'bayes' has no option 'reading'"),
        (["--target", "looking"], "--target: target is 'paper' or 'bayes'; got 'looking'"),
        (["--kind", "disentangled", "--form", "standard"], "'paper' has no option 'form'"),
        (["--kind", "rotary"], "rotary"),
    ],
    ids=str,
)
def test_relative_positions_refuse_in_one_line(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RELATIVE, *words, "--out", str(tmp_path / "c")]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_saved_circuit_has_one_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lengths that do not fit, a length in the notes, other lags: one line each, exit code 2."""
    out = tmp_path / "circuit"
    assert main([*RELATIVE, "--out", str(out)]) == 0
    notes = out / "notes.json"
    kept = json.loads(notes.read_text())
    changes: list[tuple[dict[str, object], str]] = [
        ({**kept, "circuit": {**kept["circuit"], "length": 300}}, "no entry 'length'; got 300"),
        ({**kept, "task": {**kept["task"], "lags": [1, 2]}}, "the circuit is for lags (1, 3)"),
    ]
    for changed, said in changes:
        notes.write_text(json.dumps(changed))
        capsys.readouterr()
        assert main(["verify", str(out)]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1
    other = sih.random_transition_matrix(3, rng=9).tolist()
    notes.write_text(json.dumps({**kept, "task": {**kept["task"], "P": other}}))
    assert main(["verify", str(out)]) == 2
    assert "the weights are those of another matrix" in capsys.readouterr().err
    notes.write_text(json.dumps(kept))
    assert main(["verify", str(out), "--length", "2"]) == 2
    absolute = str(tmp_path / "absolute")
    assert main([*SMALL, "--out", absolute]) == 0
    capsys.readouterr()
    assert main(["verify", absolute, "--length", "40"]) == 2
    error = capsys.readouterr().err
    assert "circuit and task do not fit" in error
    assert error.count("\n") == 1
