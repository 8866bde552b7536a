from __future__ import annotations

from pathlib import Path

import pytest

from sih.base.files import read_series


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_text_of_characters_and_of_words(tmp_path: Path) -> None:
    found = read_series(write(tmp_path, "a.txt", "abba\n\nb?a\n"))
    assert (found.symbols, found.parts) == (("a", "b"), [[0, 1, 1, 0], [1, -1, 0]])
    found = read_series(write(tmp_path, "b.txt", "rain sun  rain NA sun\n"))
    assert (found.symbols, found.parts) == (("rain", "sun"), [[0, 1, 0, -1, 1]])


def test_csv_by_column(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", 'day,weather\n1,rain\n2,sun\n3,\n4,"sun"\n5\n')
    for column in ("weather", "2"):
        found = read_series(path, column=column)
        assert (found.symbols, found.parts) == (("rain", "sun"), [[0, 1, -1, 1, -1]])
    assert read_series(write(tmp_path, "b.csv", "x\nu\n\nv\n")).parts == [[0, -1, 1]]
    assert read_series(write(tmp_path, "c.tsv", "x\ty\nu\tp\nv\tq\n"), column="y").symbols == (
        "p",
        "q",
    )


def test_fasta_with_gaps_and_records(tmp_path: Path) -> None:
    found = read_series(write(tmp_path, "a.fa", ">one\nACgt\nNA\n>two\nT-C\n"))
    assert found.symbols == ("A", "C", "G", "T")
    assert found.parts == [[0, 1, 2, 3, -1, 0], [3, -1, 1]]


def test_given_symbols_keep_their_order_and_others_are_missing(tmp_path: Path) -> None:
    found = read_series(write(tmp_path, "a.txt", "cabac"), symbols=("b", "a"))
    assert (found.symbols, found.parts) == (("b", "a"), [[-1, 1, 0, 1, -1]])


@pytest.mark.parametrize(
    ("name", "content", "options", "said"),
    [
        ("a.txt", b"\xff\xfe\x00", {}, "is not text"),
        ("a.txt", b"aaaa", {}, "two different symbols or more"),
        ("a.txt", b"", {}, "two different symbols or more"),
        ("a.txt", b"ab", {"symbols": ("x", "y")}, "asked for are x, y"),
        ("a.txt", b"ab", {"column": "x"}, "a column is of a CSV file"),
        ("a.txt", b"ab", {"format": "json"}, "format"),
        ("a.csv", b"u,v\n1,2\n", {}, "has the columns u, v; say which"),
        ("a.csv", b"u,v\n1,2\n", {"column": "w"}, "got 'w'"),
        ("a.csv", b"", {}, "has the columns"),
        ("a.fa", b"ACGT\n", {}, "is not FASTA"),
        (
            "a.csv",
            b"x\n" + b"\n".join(str(n).encode() for n in range(300)),
            {},
            "300 different symbols",
        ),
    ],
)
def test_what_is_no_series_is_one_line(
    tmp_path: Path, name: str, content: bytes, options: dict[str, object], said: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=said) as caught:
        read_series(tmp_path / name, **options)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="there is no file"):
        read_series(tmp_path / "none")
