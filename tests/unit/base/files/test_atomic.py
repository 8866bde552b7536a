from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sih.base.files import atomic_folder, atomic_write, check_place

FILES = ("a.txt", "b.txt")


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
    with (
        pytest.raises(ValueError, match=r"cannot write to .*file/a.txt"),
        atomic_write(tmp_path / "file" / "a.txt"),
    ):
        pass
    with pytest.raises(ValueError, match="it is a folder"), atomic_write(tmp_path) as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_is_being_written_is_not(
    tmp_path: Path,
) -> None:
    killed = (
        "import os, sys; from sih.base.files.atomic import atomic_write, atomic_folder\n"
        "with atomic_write(sys.argv[1] + '/a.txt') as f, atomic_folder(sys.argv[1] + '/m', ()) as n: os._exit(9)"
    )
    subprocess.run(
        [sys.executable, "-c", killed, str(tmp_path)], env=dict(os.environ), timeout=60, check=False
    )
    assert len([path for path in tmp_path.iterdir() if path.suffix == ".part"]) == 2
    mine = tmp_path / ".thesis.part"
    mine.write_text("not ours")
    with atomic_write(tmp_path / "b.txt") as outer:
        outer.write(b"outer")
        with atomic_write(tmp_path / "c.txt") as inner:
            inner.write(b"inner")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".thesis.part", "b.txt", "c.txt"]


def test_a_disk_error_in_the_middle_is_one_line(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match=r"^cannot write to .*a\.txt: No space left on device$"),
        atomic_write(tmp_path / "a.txt"),
    ):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("within", [False, True], ids=["exchanged", "file by file"])
def test_a_folder_is_replaced_whole_and_keeps_what_is_not_ours(
    within: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "m"
    with atomic_folder(target, FILES) as new:
        (new / "a.txt").write_text("old")
        (new / "b.txt").write_text("old")
        assert not target.exists()
    (target / "mine").mkdir()
    (target / "mine" / "thesis.txt").write_text("years")
    if within:
        monkeypatch.chdir(
            target / "mine"
        )  # a folder that somebody stands in does not change places
    with (  # noqa: PT012
        pytest.raises(ValueError, match=r"cannot write to \S*/m/a\.txt$"),
        atomic_folder(target, FILES) as new,
    ):
        (new / "a.txt").write_text("half")
        raise ValueError(f"cannot write to {new / 'a.txt'}")
    assert (target / "a.txt").read_text() == "old"
    with atomic_folder(target, FILES) as new:
        (new / "a.txt").write_text("new")
    assert sorted(path.name for path in target.iterdir()) == ["a.txt", "mine"]
    assert (target / "a.txt").read_text() == "new"
    assert (target / "mine" / "thesis.txt").read_text() == "years"
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_place_where_nothing_can_be_written_is_noticed_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_place(tmp_path / "new" / "folder" / "a.txt")
    check_place(tmp_path / "file")
    with pytest.raises(ValueError, match="file is a file"):
        check_place(tmp_path / "file" / "a.txt")
