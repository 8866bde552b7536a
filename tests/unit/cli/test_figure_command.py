from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from support.findings import PAPER, number_of
from support.golden import help_of
from unit.cli.conftest import Experiments

from sih.cli import main
from sih.cli.figure_flags import asked, figure_in, flags_of
from sih.report.page import number
from sih.report.subjects import figures
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
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(few)
    assert all(len(line) <= 80 and len(line.split()) > 3 for line in lines)
    for words in (["figure", "haeds"], ["figure"]):
        assert main([*words, "--out", str(tmp_path / "none")]) == 2
        complaint = capsys.readouterr().err
        assert complaint.count("\n") == 1
        assert "did you mean heads?" in complaint or len(words) == 1
        assert "`sih figure --list` lists all" in complaint
    assert main(["figure", "recipes", "--out", str(tmp_path / "none")]) == 2
    assert "needs standard-1.9, not trained yet; `sih reproduce --train`" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_another_seed_leaves_the_papers_figure_and_judges_nothing(
    few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["figure", "claim_histogram", "--out", str(tmp_path)]
    assert main(words) == 0
    assert "claim-1 (Sec. 5.3, Claim 1; Fig. 3 left)" in capsys.readouterr().out
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    assert main([*words, "--seed", "5"]) == 0
    said = capsys.readouterr().out
    assert "claim-1" not in said
    assert {path: path.read_bytes() for path in before} == before
    (data,) = (path for path in tmp_path.glob("data/*.npz") if path not in before)
    assert re.fullmatch(r"claim_histogram-[0-9a-f]{8}", data.stem)
    assert (
        f"{data.stem} is of another task than claim_histogram: no statement is judged on it" in said
    )
    assert json.loads((tmp_path / "data" / f"{data.stem}.json").read_bytes())["config"]["seed"] == 5


def test_a_figure_of_another_task(
    few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The picture, its data and its caption are of what was asked, under a name of its own, the same every time."""
    words = ["figure", "claim_histogram", "--states", "4", "--lags", "1", "3", "--matrices", "2"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    (picture,) = tmp_path.glob("figures/*.png")
    config = json.loads((tmp_path / "data" / f"{picture.stem}.json").read_bytes())["config"]
    assert (config["num_states"], config["lags"], config["matrices"]) == (4, [1, 3], 2)
    note = json.loads((tmp_path / "data" / f"{picture.stem}.drawn.json").read_bytes())
    assert "2 with 4 states, uniform rows" in note["caption"]
    assert "2 with 4 states, uniform rows" in " ".join(said.split())
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "kept" in capsys.readouterr().out
    assert [path.stem for path in tmp_path.glob("figures/*.png")] == [picture.stem]


def test_what_the_configuration_says_already_is_the_papers_figure(
    few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["figure", "claim_histogram", "--states", "3", "--lags", "1", "2", "5", "--seed", "0"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert "claim-1 (" in capsys.readouterr().out
    assert [path.stem for path in tmp_path.glob("figures/*.png")] == ["claim_histogram"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (
            "claim_histogram --states 1",
            "--states: states must be a whole number, at least 2; got 1",
        ),
        ("claim_histogram --lags 3 2", "--lags: lags must be distinct, positive and increasing"),
        ("claim_histogram --lags 3", "--lags: a comparison needs at least 2 lags"),
        ("claim_histogram --matrix-law gamma", "--matrix-law: matrix_law must be one of dirichlet"),
        ("claim_histogram --concentration 2", "--concentration: the law uniform has no"),
        ("claim_histogram --length 9", "Unrecognized options: --length"),
        ("claim_histogram --seed -1", "--seed: seed must be a whole number, at least 0; got -1"),
        ("heads --seed 1", "Unrecognized options: --seed"),
    ],
)
def test_a_task_that_makes_no_sense_is_one_line(
    words: str, complaint: str, few: Experiments, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", *words.split(), "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["trained", "switching", "few_heads"])
def test_lags_without_a_model_are_one_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["figure", name, "--lags", "2", "4", "--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"sih: figure {name} shows trained models, and none of its models is")
    assert "lags {2,4}" in said
    assert said.count("\n") == 1


def test_the_help_of_a_figure_has_its_flags() -> None:
    said = {
        flag.split()[0]: text for flag, text in help_of(["figure", "constructions"]).items() if flag
    }
    own = {"--lam", "--beta", "--seed", "--lags", "--states", "--length", "--matrices", "--run"}
    assert own | {"--sequences", "--matrix-law"} <= said.keys()
    assert "--lag-sets" not in said
    assert "instead of {1,2,3}, {1,3,4}, {1,2,3,4,5}, {1,3}" in said["--lags"]


@pytest.mark.parametrize("name", figures())
def test_every_figure_reads_its_own_words_back(name: str) -> None:
    """By one rule: flags at their defaults ask for the paper's figure, and every flag has its help."""
    figure = figures()[name]
    flags = list(flags_of(figure.experiment.config))
    assert len({flag.name for flag in flags}) == len(flags)
    assert asked(figure, {flag.name: flag.default for flag in flags}) is figure
    for flag in flags:
        assert flag.annotation.__metadata__[0].help


def test_where_the_figures_name_stands() -> None:
    names = {"beta": 0, "heads": 0}
    assert figure_in(["beta", "--states", "3"], names) == "beta"
    assert figure_in(["--out", "heads", "beta"], names) == "beta"
    assert figure_in(["--out", "heads"], names) is None
    assert figure_in(["bete", "--states", "3"], names) == "bete"
    assert figure_in(["--list"], names) is None


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
