from __future__ import annotations

from pathlib import Path

import pytest

from sih.base.files import MissingFileError, read_json, reading


def test_an_outer_reader_says_it_in_its_own_words(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(MissingFileError, match=r"^there is no file .*a\.json$"):
        read_json(path)
    with (
        pytest.raises(ValueError, match=r"^no run here$"),
        reading(path, "is no run", missing="no run here"),
    ):
        read_json(path)
    path.write_text("{}")
    with (
        pytest.raises(ValueError, match=r"^\S*a\.json is no run: 'steps'$"),
        reading(path, "is no run"),
    ):
        read_json(path)["steps"]
    path.write_text("{")
    with (
        pytest.raises(ValueError, match=r"^\S*a\.json is no run: Expecting"),
        reading(path, "is no run"),
    ):
        read_json(path)
