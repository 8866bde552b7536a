"""Commands of `sih`, run in this process."""

from __future__ import annotations

import pytest

from sih.cli import main


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    captured = capsys.readouterr()
    return code, captured.out, captured.err
