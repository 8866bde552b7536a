from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from sih.base.files import read_arrays, read_table, write_arrays, write_rows


def test_arrays_by_name(tmp_path: Path) -> None:
    write_arrays(tmp_path / "new" / "a.npz", tokens=np.arange(3), seed=5, note="words")
    found = read_arrays(tmp_path / "new" / "a.npz")
    assert found["tokens"].tolist() == [0, 1, 2]
    assert (int(found["seed"]), str(found["note"])) == (5, "words")


def test_rows_and_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    write_rows(path, ([i, i / 3] for i in range(2)), comment="# words\na,b\n")
    assert path.read_text() == f"# words\na,b\n0,0.0\n1,{1 / 3!r}\n"
    assert read_table(path, skip=2).tolist() == [[0.0, 0.0], [1.0, 1 / 3]]
    np.save(tmp_path / "a.npy", np.eye(2))
    assert read_table(tmp_path / "a.npy").tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_what_cannot_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\nthree\n")
    (tmp_path / "a.npz").write_bytes(b"PK nonsense")
    np.save(tmp_path / "one.npy", np.eye(2))
    np.savez(tmp_path / "pickled.npz", a=np.array([{}], dtype=object))
    for path, read in (
        ("a.csv", read_table),
        ("a.npz", read_arrays),
        ("one.npy", read_arrays),
        ("none.npz", read_arrays),
    ):
        with pytest.raises(ValueError, match=path) as caught:
            read(tmp_path / path)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="pickle"):
        read_arrays(tmp_path / "pickled.npz")


def test_a_table_without_rows_is_refused_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("# nothing\n")
    with (
        pytest.raises(ValueError, match="holds no table of numbers"),
        warnings.catch_warnings(record=True) as said,
    ):
        read_table(tmp_path / "a.csv")
    assert not said
