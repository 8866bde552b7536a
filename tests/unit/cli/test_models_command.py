from __future__ import annotations

import pytest

import sih
from sih.cli import main
from sih.runs.run_store import RunStore


def test_models_lists_what_is_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--plain"]) == 0
    assert capsys.readouterr().out.split() == RunStore().names()
    with pytest.raises(ValueError, match="no model 'none such'"):
        sih.load("none such")
