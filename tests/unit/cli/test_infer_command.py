from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import run

import sih


@pytest.fixture
def series(tmp_path: Path) -> Path:
    tokens = sih.sample(
        sih.Task([[0.9, 0.1], [0.2, 0.8]], (1, 2, 3), 300), 2, rng=0, lag=2
    ).tokens.tolist()
    path = tmp_path / "series.txt"
    path.write_text("\n".join("".join("xy"[token] for token in row) for row in tokens))
    return path


def test_a_file_is_read_judged_and_shown(
    series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    words = [
        "infer",
        str(series),
        "--lags",
        "1",
        "2",
        "3",
        "--permutations",
        "19",
        "--out",
        str(out),
    ]
    code, said, _ = run(capsys, *words)
    assert code == 0
    assert "2 series, 600 tokens, 0 missing, 594 counted; symbols x y" in said
    assert "lag 2, with posterior 1.000" in said
    assert "permutation test: p = 0.05 (19 shuffles; null: order carries no information)" in said
    record = json.loads((out / "inference.json").read_text())
    found = sih.infer(
        [["xy".index(c) for c in line] for line in series.read_text().split()], (1, 2, 3)
    )
    assert record["posterior"] == found.posterior.tolist()
    assert (record["lag"], record["tied"]) == (2, [])
    assert record["interval"] == found.interval.tolist()
    assert record["permutation_test"] == {"p_value": 0.05, "permutations": 19}
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert sorted(before) == [
        "inference.html",
        "inference.json",
        *(f"inference.{e}" for e in ("pdf", "png", "svg")),
    ]
    assert run(capsys, *words)[0] == 0
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


def test_lags_that_explain_a_series_alike_are_a_tie(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "series.txt", tmp_path / "found"
    path.write_text("ab" * 30)
    code, said, _ = run(capsys, "infer", str(path), "--lags", "1", "2", "--out", str(out))
    assert code == 0
    assert "lags 1 and 2 explain it alike, with posteriors 0.500 and 0.500" in " ".join(
        said.split()
    )
    assert json.loads((out / "inference.json").read_text())["tied"] == [1, 2]
    assert "lags 1 and 2 explain it alike" in (out / "inference.html").read_text()


def test_a_series_too_short_has_no_lag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "series.txt", tmp_path / "found"
    path.write_text("ab")
    code, said, _ = run(capsys, "infer", str(path), "--lags", "1", "5", "--out", str(out))
    assert code == 0
    assert "no token counts: the series says nothing of its lag" in said
    assert json.loads((out / "inference.json").read_text())["lag"] is None


def test_names_in_the_page_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "<b>&.txt"
    path.write_text("<i> & <i> <i> & & <i> & <i>")
    code, _, _ = run(
        capsys,
        "infer",
        str(path),
        "--lags",
        "1",
        "--permutations",
        "0",
        "--out",
        str(tmp_path / "o"),
    )
    page = (tmp_path / "o" / "inference.html").read_text()
    assert code == 0
    assert "<i>" not in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;.txt" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.txt"], "there is no file"),
        (["SERIES", "--lags", "2", "1"], "increasing"),
        (["SERIES", "--format", "fasta"], "is not FASTA"),
        (["SERIES", "--symbols", "q", "r"], "two different symbols or more"),
        (["SERIES", "--permutations", "-1"], "permutations"),
        (["SERIES", "--concentration", "0"], "concentration"),
        (["SERIES", "--column", "a"], "CSV"),
    ],
)
def test_bad_input_is_one_line(
    words: list[str], said: str, series: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = [str(series) if word == "SERIES" else word for word in words]
    code, _, error = run(capsys, "infer", *given, "--out", str(out))
    assert code == 2
    assert said in error
    assert error.count("\n") == 1
    assert not out.exists()
