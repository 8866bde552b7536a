from __future__ import annotations

import ast
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.commands import run
from torture.commands import BASE

from sih.cli import COMMANDS


def test_overview_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert sorted(re.findall(r"^  (\S.*?)  +\S", out, flags=re.M)) == sorted(
        BASE
    )  # a line of each, written by hand
    assert run(capsys, "--version")[1].startswith("sih ")
    assert run(capsys, "version") == run(capsys, "--version")
    assert run(capsys, "help") == run(capsys) == run(capsys, "--help")
    assert max(map(len, out.splitlines())) <= 80


def test_help_of_a_command_has_two_spellings(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["runs", "show"], ["heads"]):
        assert run(capsys, "help", *words) == run(capsys, *words, "--help")
    code, _, err = run(capsys, "help", "trian")
    assert code == 2
    assert "did you mean train?" in err


def test_the_overview_loads_nothing() -> None:
    code = "import sys, sih_command; sys.argv = ['sih', *sys.argv[1:]]; sih_command.run()"
    loaded = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules, 'sih' in sys.modules))"
    for words in ([], ["--help"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-c", f"{loaded}; {code}", *words],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "False False"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *name.split(), "--help")
    assert (code, err) == (0, "")
    assert f"Example: sih {name}" in out
    assert "unused" not in out  # a flag that does nothing


def test_every_argument_of_a_command_is_used() -> None:
    chosen_before = {
        "train": {"kind", "init", "method"}
    }  # `start_from` takes these from the command line
    for name, (place, _) in COMMANDS.items():
        module, function = place.split(":")
        found = importlib.import_module(module)
        (tree,) = ast.parse(inspect.getsource(getattr(found, function))).body
        assert isinstance(tree, ast.FunctionDef)
        given = {one.arg for one in (*tree.args.args, *tree.args.kwonlyargs)}
        used = {
            node.id for line in tree.body for node in ast.walk(line) if isinstance(node, ast.Name)
        }
        assert given - used <= chosen_before.get(name, set()), name


BAD = {
    "unknown command": (
        ["smaple"],
        "no command 'smaple'; did you mean sample? `sih --help` lists all",
    ),
    "lags not increasing": (["sample", "--lags", "3", "1"], "distinct, positive and increasing"),
    "lags not numbers": (["sample", "--lags", "one"], "--lags"),
    "no lags": (["sample", "--lags"], "lags must be"),
    "length too short": (["sample", "--length", "3"], "above the largest lag, 3; got 3"),
    "unknown flag": (["sample", "--laggs", "1"], "--laggs"),
    "length no machine has": (
        ["sample", "--length", "2147483648"],
        "sequences of 2,147,483,648 tokens would take",
    ),
    "states no machine has": (
        ["sample", "--states", "300000"],
        "a matrix of 300,000 states would take",
    ),
    "width no machine has": (["train", "--dim", "99999999", "--out", "wide"], "would take"),
    "attention no machine has": (["train", "--length", "2147483648", "--out", "long"], "length"),
    "a file in the way": (["figure", "teaser", "--out", "P.csv/x"], "P.csv is a file"),
    "unknown kind": (["sample", "--kind", "round"], "Expected one of"),
    "size": (["sample", "--size", "0"], "at least 1; got 0"),
    "seed": (["sample", "--seed", "-1"], "got -1"),
    "states": (["sample", "--states", "1"], "at least 2 states"),
    "concentration": (["sample", "--concentration", "nan"], "positive number"),
    "ending": (["sample", "--out", "x.txt"], "got x.txt"),
    "matrix missing": (["sample", "--matrix", "none.npy"], "there is no file none.npy"),
    "matrix and states": (
        ["sample", "--matrix", "P.csv", "--states", "7"],
        "--states 7 does not fit P.csv",
    ),
    "bad matrix": (["sample", "--matrix", "bad.csv"], "bad.csv: every row"),
    "predict nothing": (["predict"], "predict"),
    "predict missing": (["predict", "none.npz"], "there is no file none.npz"),
    "predict foreign": (["predict", "mine.csv"], "say --matrix P.npy (or --fresh) and --lags"),
    "predict out of range": (
        ["predict", "mine.csv", "--matrix", "P.csv", "--lags", "1"],
        "states 0 to 1",
    ),
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


@pytest.mark.parametrize(
    "name", ["[/red].npz", "[bold]x.npz", ":smile:.npz", "line\nbreak.npz", "\udcff.npz"]
)
def test_a_path_is_printed_as_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "sample", "--size", "2", "--length", "8", "--out", name)
    assert (code, err) == (0, "")
    assert (tmp_path / name).exists()
    assert name in out or not name.isascii()
