from __future__ import annotations

import json
from pathlib import Path

from sih.artifacts.kept_files import record_files, recorded_files


def test_files_are_found_again_until_they_or_the_key_change(tmp_path: Path) -> None:
    record, files = tmp_path / "data" / "a.drawn.json", (tmp_path / "figures" / "a.png", tmp_path / "figures" / "a.pdf")
    files[0].parent.mkdir()
    for path in files:
        path.write_text(path.name)
    assert recorded_files(record, "key") is None
    record_files(record, "key", files)
    assert recorded_files(record, "key") == files
    assert recorded_files(record, "another") is None
    assert list(json.loads(record.read_text())["files"]) == ["figures/a.png", "figures/a.pdf"]
    moved = tmp_path.rename(tmp_path.with_name("elsewhere"))
    assert recorded_files(moved / "data" / "a.drawn.json", "key") == tuple(
        moved / "figures" / path.name for path in files
    )
    (moved / "figures" / "a.pdf").write_text("touched")
    assert recorded_files(moved / "data" / "a.drawn.json", "key") is None
    (moved / "figures" / "a.pdf").unlink()
    assert recorded_files(moved / "data" / "a.drawn.json", "key") is None


def test_a_damaged_record_says_nothing(tmp_path: Path) -> None:
    record = tmp_path / "data" / "a.json"
    record.parent.mkdir()
    for content in ("", "[]", '{"key": "key"}', '{"key": "key", "files": 3}'):
        record.write_text(content)
        assert recorded_files(record, "key") is None
