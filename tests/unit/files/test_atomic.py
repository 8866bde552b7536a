from __future__ import annotations

from pathlib import Path

import pytest

from sih.files import atomic_write


def test_a_file_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "folder" / "a.txt"
    with atomic_write(target) as file:
        file.write(b"one")
        assert not target.exists()
    assert target.read_bytes() == b"one"
    assert [p.name for p in target.parent.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), atomic_write(target) as file:
        file.write(b"%d" % (1 // 0))
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_places_that_cannot_be_written_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ValueError, match=r"cannot write to .*file/a.txt"), atomic_write(tmp_path / "file" / "a.txt"):
        pass
    with pytest.raises(ValueError, match="it is a folder"), atomic_write(tmp_path) as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
