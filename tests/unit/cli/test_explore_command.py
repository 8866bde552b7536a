from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from sih.cli import main
from sih.explorer import page_export
from sih.explorer.parse_state import fragment
from sih.explorer.state import Matrix, State

BAD = {
    "lag": (["--lags", "99"], "from 1 to 16; got 99"),
    "length": (["--lags", "1", "9", "--length", "9"], "longer than the largest lag, 9"),
    "states": (["--states", "11"], "from 2 to 10; got 11"),
    "seed": (["--seed", "-1"], "got -1"),
    "concentration": (["--concentration", "0"], "got 0"),
    "law": (
        ["--matrix-law", "uniform", "--concentration", "2"],
        "the law uniform has no concentration",
    ),
    "port": (["--port", "70000"], "65535"),
    "host": (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid"),
    "ending": (["--export", "page.txt"], "got page.txt"),
    "sequences": (["--export", "page.html", "--sequences", "0"], "from 1 to 64"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_exit_code_2(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words, message = BAD[case]
    assert main(["explore", "--no-browser", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert message in said.err
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_a_uniform_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[State] = []

    def export(path: Path, state: State, sequences: int) -> int:
        asked.append(state)
        return 0

    monkeypatch.setattr(page_export, "export_page", export)
    words = [
        "--matrix-law",
        "uniform",
        "--matrix-seed",
        "11",
        "--export",
        str(tmp_path / "page.html"),
    ]
    assert main(["explore", *words]) == 0
    assert asked[0].matrix == Matrix("uniform", 11)
    assert fragment(asked[0]) == "matrix=%7B%22kind%22:%22uniform%22,%22seed%22:11%7D"


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["explore", "--no-browser", "--port", str(port)]) == 2
    assert re.fullmatch(
        rf"sih: cannot listen on 127\.0\.0\.1 port {port}: .*\n", capsys.readouterr().err
    )


def test_it_says_where_it_is_serves_and_stops() -> None:
    command = [
        sys.executable,
        "-m",
        "sih.cli",
        "explore",
        "--no-browser",
        "--port",
        "0",
        "--lags",
        "1",
        "3",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"(http://127\.0\.0\.1:\d+/)#lags=\[1,3\]", said)
        assert found, said
        with urllib.request.urlopen(found[1], timeout=60) as answer:
            assert b"Selective induction heads" in answer.read()
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=60)
        assert "Traceback" not in err
        assert server.returncode in (0, 130)
