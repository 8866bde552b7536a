"""Tables of documents are made from CSV files, and the files are what their scripts write."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from research import trained_models
from sih.training.runs.run_store import RunStore
from website.tables import NOTHING, TABLE, table, tables_written

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "results" / "data"
PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
MARKED = [path for path in PAGES if "<!-- table " in path.read_text()]
ROWS = """run,lags,steps,kl,error
`a`,1 2 3,1000,0.125,0.004
`b`,1 2,2000,0.5,
`b`,1 2 3,2000,.375±.01,0.000
"""


def rows_of(name: str) -> list[list[str]]:
    with open(DATA / name, newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.stem)
def test_tables_of_pages_are_those_of_their_files(path: Path) -> None:
    text = path.read_text()
    assert tables_written(text) == text, "python -m website.tables writes them"
    assert text.count("<!-- table ") == len(TABLE.findall(text)) == text.count("<!-- end table -->")


def test_enough_tables_are_made() -> None:
    assert len(MARKED) >= 7
    assert sum(len(TABLE.findall(path.read_text())) for path in MARKED) >= 40


def test_a_changed_number_is_found() -> None:
    text = (ROOT / "docs" / "results" / "head-counts.md").read_text()
    assert "4.657 ± 0.275" in text
    assert tables_written(text.replace("4.657 ± 0.275", "4.567 ± 0.275")) == text


def test_every_file_is_named_by_a_page() -> None:
    said = "".join(path.read_text() for path in PAGES)
    assert [path.name for path in sorted(DATA.glob("*.csv")) if path.name not in said] == []


@pytest.mark.parametrize("path", sorted(DATA.glob("*.csv")), ids=lambda path: path.stem)
def test_files_are_whole(path: Path) -> None:
    """Each row has every column, no name comes twice, and no number lacks its zero."""
    head, *rows = rows_of(path.name)
    assert len(set(head)) == len(head)
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    cells = [cell for row in rows for cell in row if not cell.startswith("sih ")]
    assert not [cell for cell in cells if re.search(r"(?<![\w.])-?\.\d", cell)]


@pytest.fixture
def file_of_rows(tmp_path: Path) -> Path:
    (tmp_path / "a.csv").write_text(ROWS)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (
            "a.csv where lags=1 2 3 where run=`a` | r: {run} | n: {steps:,}",
            ["r | n", "`a` | 1,000"],
        ),
        ("a.csv where run=`a` | l: {lags:set} {lags:list}", ["l", "{1,2,3} [1,2,3]"]),
        ("a.csv where lags=1 2 | KL: {kl:2}[ ± {error}]", ["KL", "0.50"]),
        ("a.csv where lags=1 2 | KL: {kl} ± {error}", ["KL", ""]),
        ("a.csv where run=`b` where lags=1 2 3 | KL: {kl:mean2}", ["KL", "0.38"]),
        ("a.csv where run=`b` where lags=1 2 3 | e: 1[ ± {error:positive}]", ["e", "1"]),
        (
            "a.csv where lags=1 2 3; 1 2 | run: {run} | across {lags:set}: {steps}",
            ["run | {1,2,3} | {1,2}", "`a` | 1000 | ", "`b` | 2000 | 2000"],
        ),
    ],
)
def test_a_table_is_made(words: str, lines: list[str], file_of_rows: Path) -> None:
    head, _, *rows = (line[2:-2] for line in table(words, file_of_rows).splitlines())
    assert [head, *rows] == lines


def test_rows_that_are_missing_are_an_error_or_nothing(file_of_rows: Path) -> None:
    with pytest.raises(ValueError, match=r"a.csv has no row with run = \['c'\]"):
        table("a.csv where run=c | r: {run}", file_of_rows)
    assert table("a.csv whenever run=c | r: {run}", file_of_rows) == NOTHING


def test_the_files_of_models_are_what_the_script_writes() -> None:
    """But for heads, which take minutes: of them test_told_of_models.py has every number."""
    store = RunStore()
    runs = [store.run(name) for name in store.names()]
    assert rows_of("model-zoo.csv") == [
        [*trained_models.ZOO],
        *(trained_models.zoo_row(run) for run in runs),
    ]
    alone = [run for run in runs if run.name.startswith("paper-")]
    assert rows_of("training-curves.csv") == [
        [*trained_models.CURVES],
        *(trained_models.curve_row(run) for run in alone),
    ]
    assert rows_of("training-heads.csv")[0] == [*trained_models.HEADS]


def test_rows_of_heads_are_those_of_a_diagnosis() -> None:
    run = RunStore().run("paper-1.2-length32")
    rows = [row for row in rows_of("training-heads.csv") if row[0] == run.name]
    assert list(trained_models.head_rows(run)) == rows


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert trained_models.main(["--out", str(tmp_path / "file" / "below")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
