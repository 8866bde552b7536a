"""What lists something fits a terminal of 80 columns: commands run on a pseudo-terminal of that size."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest

from sih.training.runs.run_store import SHIPPED, RunStore
from sih_command import COMMANDS

LISTINGS = (["models"], ["runs", str(SHIPPED)], ["figure", "--list"], ["--help"])


def on_a_terminal(words: list[str], columns: int = 80) -> list[str]:
    """The lines that a command prints on a terminal, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {
        key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")
    }
    environment |= {"TERM": "xterm", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "sih.cli", *words]
    with subprocess.Popen(command, stdout=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:  # a terminal whose other end is closed
            pass
        assert process.wait() == 0
    os.close(ours)
    text = b"".join(parts).decode()
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).replace("\r", "").splitlines()


@pytest.mark.parametrize("words", LISTINGS, ids=lambda words: words[0])
def test_a_listing_fits_and_breaks_no_name(words: list[str]) -> None:
    lines = on_a_terminal(words)
    assert max(map(len, lines)) <= 80
    first = {line.split()[0] for line in lines if line.split()}
    if words[0] in ("models", "runs"):
        assert first >= set(RunStore().names())
    if words[0] == "--help":
        assert first >= {name.split()[0] for name in COMMANDS}
