from __future__ import annotations

import math
from pathlib import Path

import pytest

from sih.base.files import read_json, write_json


def test_round_trip(tmp_path: Path) -> None:
    value = {"lags": [1, 2, 3], "name": "β", "beta": math.inf, "task": None}
    for indent in (None, 1, 2):
        write_json(tmp_path / "new" / "a.json", value, indent=indent)
        assert read_json(tmp_path / "new" / "a.json") == value
        assert (tmp_path / "new" / "a.json").read_text(encoding="utf-8").endswith("}\n")
    with pytest.raises(ValueError, match="Out of range"):
        write_json(tmp_path / "b.json", value, allow_nan=False)
    assert not (tmp_path / "b.json").exists()


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[" * 100_000])
def test_a_damaged_file_is_named_in_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.json is not a JSON file: ") as caught:
        read_json(tmp_path / "a.json")
    assert "\n" not in str(caught.value)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"is not a JSON file: Is a directory|is not a JSON file: .*Errno"
    ):
        read_json(tmp_path)
