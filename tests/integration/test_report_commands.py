"""`sih reproduce` as people run it: in a process of its own, stopped, gone on with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SIH = [sys.executable, "-m", "sih.cli"]


@pytest.mark.slow
def test_stopped_by_ctrl_c_it_leaves_nothing_half_done(tmp_path: Path) -> None:
    command = [*SIH, "reproduce", "--out", str(tmp_path), "--jobs", "2"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 300
    while not list(tmp_path.glob("data/*.drawn.json")) and time.monotonic() < deadline:
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        said.splitlines()[-1]
        == f"sih: interrupted: what was made is kept in {tmp_path}; the same command resumes it"
    )
    assert "Traceback" not in said
    assert not list(tmp_path.rglob(".*.part"))
    with pytest.raises(ProcessLookupError):  # no worker is left in the group
        _wait_for_the_last_of(process.pid)


def _wait_for_the_last_of(group: int) -> None:
    for _ in range(50):
        os.killpg(group, 0)
        time.sleep(0.2)


@pytest.mark.slow
def test_the_whole_of_it_and_again(tmp_path: Path) -> None:
    command = [*SIH, "reproduce", "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, text=True)
    listed = json.loads((tmp_path / "report.json").read_bytes())
    judged = [one for one in listed if one["verdict"] != "not measured"]
    assert len(judged) >= 20
    for one in judged:
        if one["interval"]:
            assert one["interval"][0] <= one["measured"] <= one["interval"][1]
    began = time.monotonic()
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert " 0 of them computed now" in again.stdout
    assert time.monotonic() - began < 60
