"""A Ctrl-C at awkward moments: while the package is still being loaded, and within a destructor."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from sih import cli
from sih.cli import models_command

LOADING = """
import os, signal, sys
class Press:
    def find_spec(self, name, *_):
        if name == "torch":
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, {before})
sys.meta_path.insert(0, Press())
sys.argv = ["sih", "heads", "--lags", "1", "2"]
from sih_command import run
run()
"""


def _pressed(before: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LOADING.format(before=before)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_ctrl_c_while_loading_is_one_line() -> None:
    done = _pressed("signal.default_int_handler")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "sih: interrupted\n")


def test_where_a_shell_had_it_ignored_it_stays_ignored() -> None:
    done = _pressed("signal.SIG_IGN")
    assert (done.returncode, done.stderr) == (0, "")
    assert "heads" in done.stdout


def test_ctrl_c_in_a_destructor_is_not_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Deaf:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    def models() -> int:
        Deaf()
        time.sleep(5)
        return 0

    monkeypatch.setattr(models_command, "models", models)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert cli.main(["models"]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == "sih: interrupted\n"
