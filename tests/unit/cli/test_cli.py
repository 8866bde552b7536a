from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import sih
from sih.cli import COMMANDS, main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert all(name in out for name in COMMANDS)
    assert run(capsys, "--version")[1].startswith("sih ")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *name.split(), "--help")
    assert (code, err) == (0, "")
    assert f"Example: sih {name}" in out


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_sample_then_predict(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / f"s.{ending}", tmp_path / f"p.{ending}"
    code, said, _ = run(capsys, "sample", "--size", "6", "--length", "40", "--lags", "1", "3", "--out", str(file))
    assert code == 0
    assert "6 sequences of length 40 over 5 states" in said
    code, said, _ = run(capsys, "predict", str(file), "--out", str(out))
    assert code == 0
    assert "After the last token" in said
    assert "mean KL" in said
    assert out.exists()


def test_predictions_in_the_file_are_the_librarys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.npz"
    run(capsys, "sample", "--size", "3", "--length", "20", "--seed", "4", "--out", str(file))
    rng = torch.Generator().manual_seed(4)
    task = sih.Task(sih.random_transition_matrix(5, rng=rng), (1, 2, 3), 20)
    tokens = sih.sample(task, 3, rng=rng).tokens
    expected = {
        "bma": sih.bma(tokens, task),
        "ml": sih.maximum_likelihood(tokens, task),
        "selective": sih.selective(tokens, task, beta=7.0, evidence="sum"),
    }
    for name, law in expected.items():
        code, _, _ = run(capsys, "predict", str(file), "--predictor", name, "--beta", "7", "--evidence", "sum")
        assert code == 0
        with np.load(tmp_path / "s.predictions.npz") as found:
            assert np.abs(found["law"] - law.numpy()).max() < 1e-12
            assert found["weights"].shape == (3, 20, 3)
            assert set(found["lag"].flatten()) <= {1, 2, 3}


def test_the_same_command_writes_the_same_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.npz", "b.npz"):
        run(capsys, "sample", "--size", "4", "--kind", "sparse", "--out", str(tmp_path / name))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_predict_takes_tokens_without_a_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.csv").write_text("0,1,1,0,1\n1,1,0,0,1\n")
    np.save(tmp_path / "P.npy", np.array([[0.9, 0.1], [0.4, 0.6]]))
    words = ["predict", str(tmp_path / "mine.csv"), "--matrix", str(tmp_path / "P.npy"), "--lags", "1", "2"]
    code, said, _ = run(capsys, *words, "--out", str(tmp_path / "p.csv"))
    assert code == 0
    assert "mean KL" not in said  # the truth is not known
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 1 + 2 * 5


BAD = {
    "unknown command": (["smaple"], "no command 'smaple'; the commands are sample"),
    "lags not increasing": (["sample", "--lags", "3", "1"], "distinct, positive and increasing"),
    "lags not numbers": (["sample", "--lags", "one"], "--lags"),
    "no lags": (["sample", "--lags"], "lags must be"),
    "length too short": (["sample", "--length", "3"], "above the largest lag, 3; got 3"),
    "unknown flag": (["sample", "--laggs", "1"], "--laggs"),
    "unknown kind": (["sample", "--kind", "round"], "Expected one of"),
    "size": (["sample", "--size", "0"], "at least 1; got 0"),
    "seed": (["sample", "--seed", "-1"], "got -1"),
    "states": (["sample", "--states", "1"], "at least 2 states"),
    "concentration": (["sample", "--concentration", "nan"], "positive number"),
    "ending": (["sample", "--out", "x.txt"], "got x.txt"),
    "matrix missing": (["sample", "--matrix", "none.npy"], "there is no file none.npy"),
    "matrix and states": (["sample", "--matrix", "P.csv", "--states", "7"], "--states 7 does not fit P.csv"),
    "bad matrix": (["sample", "--matrix", "bad.csv"], "bad.csv: every row"),
    "predict nothing": (["predict"], "predict"),
    "predict missing": (["predict", "none.npz"], "there is no file none.npz"),
    "predict foreign": (["predict", "mine.csv"], "say --matrix P.npy and --lags"),
    "predict out of range": (["predict", "mine.csv", "--matrix", "P.csv", "--lags", "1"], "states 0 to 1"),
    "predict ending": (["predict", "mine.csv", "--out", "p.json"], "got p.json"),
    "reproduce on a file": (["reproduce", "--out", "mine.csv"], "cannot write to mine.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_exit_code_2_and_nothing_written(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "P.csv").write_text("0.9,0.1\n0.4,0.6\n")
    (tmp_path / "bad.csv").write_text("0.9,0.2\n0.4,0.6\n")
    (tmp_path / "mine.csv").write_text("0,1,9,0,1\n")
    before = sorted(tmp_path.iterdir())
    words, message = BAD[case]
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith("sih: ")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(tmp_path.iterdir()) == before
