from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.small_runs import WORDS

from sih.cli import main


def test_a_matrix_from_a_file_is_in_the_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "P.csv").write_text("0.9,0.1\n0.4,0.6\n")
    words = [*WORDS, str(tmp_path / "run"), "--matrix", str(tmp_path / "P.csv")]
    assert main(words) == 2  # three states were asked for
    assert "--states 3 does not fit" in capsys.readouterr().err
    assert main([word for word in words if word not in ("--states", "3")]) == 0
    config = json.loads((tmp_path / "run/config.json").read_bytes())
    assert (config["task"]["states"], config["task"]["matrix"]) == (2, [[0.9, 0.1], [0.4, 0.6]])
