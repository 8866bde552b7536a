"""Kills and Ctrl-C: at every file operation of a command, and at random moments. Nothing is lost, the result the same.

`WORK` has a line for each command that is stopped.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from torture.damage import GRID, originals, sweep
from torture.trial import Outcome, Trial, command, forked, scratch

EVENTS = (
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.listdir",
    "os.scandir",
    "os.link",
)
TRAIN = "train --lags 1 2 --states 3 --length 12 --heads 1 2 --dim 8 --qk-dim 4 --steps 5 --batch 5 --evaluate-every 3 "
TRAIN += "--held-out 7 --threads 1 --keep-every 2 --checkpoint-seconds 0 --out out"


def _reproduce(jobs: int = 1) -> int:
    """Make two small figures and the report."""
    import dataclasses
    from types import SimpleNamespace

    from sih.claim import claim_histogram
    from sih.cli import main
    from sih.paper import heads as head_counts
    from sih.report import subjects
    from sih.results.figure import shown

    chosen: list[Any] = [
        dataclasses.replace(
            claim_histogram.EXPERIMENT,
            config=claim_histogram.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5)),
        ),
        dataclasses.replace(head_counts.EXPERIMENT, config=head_counts.HeadCountsConfig(largest=4)),
    ]
    stated = tuple(subjects.statements().values())
    figures = tuple(shown(one) for one in chosen)
    subjects.SUBJECTS = (SimpleNamespace(FIGURES=figures, STATEMENTS=stated),)
    return main(["reproduce", "--out", "out", "--jobs", str(jobs)])


def _construct(lags: str) -> Callable[[], int]:
    return command(*f"construct --lags {lags} --length 16 --states 3 --out out".split())


WORK: dict[str, Callable[[], int]] = {
    "train": command(*TRAIN.split()),
    "construct": _construct("1 2"),
    "export": command(*["export", "../circuit", "--out", "out"]),
    "reproduce": _reproduce,
    "sweep": lambda: sweep(Path("../grid.toml"), Path("out")),
}
REPLACED = {
    "construct": ["verify", "out"],
    "export": ["export", "out", "--to", "sih", "--out", "back"],
}
"""Commands that replace a folder, and what reads it: the old one or the new one is there whenever they are killed."""


def begin(name: str, folder: Path) -> None:
    """Prepare the folder: a grid, a circuit to export, what is to be replaced."""
    (folder.parent / "grid.toml").write_text(GRID)
    if name == "export":
        shutil.copytree(_circuit("1 2"), folder.parent / "circuit")
        shutil.copytree(_circuit("1 3"), folder.parent / "other")
        assert forked(command("export", "../other", "--out", "out"), folder).code == 0
    if name == "construct":
        shutil.copytree(_circuit("1 3"), folder / "out")


@cache
def _circuit(lags: str) -> Path:
    place = originals().parent / f"circuit {lags}"
    place.mkdir()
    assert forked(_construct(lags), place).code == 0
    return place / "out"


def content(folder: Path) -> dict[str, bytes]:
    """Read all that must come out the same: everything but times and versions."""
    paths = [
        path
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file() and path.name != "environment.json"
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@cache
def undisturbed(name: str) -> tuple[int, float, dict[str, bytes]]:
    """Run a command to its end: its number of file operations, its seconds, and what it wrote."""
    with scratch() as folder:
        begin(name, folder)
        began = time.monotonic()
        found = forked(lambda: _watched(WORK[name], folder, None), folder)
        assert found.code == 0, found.err
        return (
            int((folder.parent / "operations").read_text()),
            time.monotonic() - began,
            content(folder),
        )


def _watched(work: Callable[[], int], folder: Path, last: int | None) -> int:
    """Do the work and count its file operations below the folder, its workers' too; the one that does `last` ends."""
    shared, place = mmap.mmap(-1, 8), str(folder)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event not in EVENTS
            or not arguments
            or not isinstance(arguments[0], str | bytes | os.PathLike)
        ):
            return
        if os.path.abspath(os.fsdecode(arguments[0])).startswith(place):
            count = struct.unpack("q", shared[:])[0] + 1
            shared[:] = struct.pack("q", count)
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    code = work()
    total, place = struct.unpack("q", shared[:])[0], "\0"
    (folder.parent / "operations").write_text(str(total))
    return code


def trials(share: float) -> Iterator[Trial]:
    """Kill at every file operation; a share of it takes every so-manieth."""
    for name in WORK:
        for number in range(1, undisturbed(name)[0] + 1, max(1, round(1 / share))):
            yield partial(_killed_at, name=name, number=number)


def random_trials(share: float) -> Iterator[Trial]:
    for number in range(int(200 * share)):
        yield partial(_killed_after, name=list(WORK)[number % len(WORK)])


def interrupt_trials(share: float) -> Iterator[Trial]:
    """Press Ctrl-C at a random moment, twenty times in each of four commands, one of them with workers of its own."""
    for number in range(int(80 * share)):
        yield partial(
            _interrupted, name=("train", "sweep", "reproduce", "reproduce, two jobs")[number % 4]
        )


def _killed_at(draw: random.Random, folder: Path, name: str, number: int) -> str:
    begin(name, folder)
    found = forked(lambda: _watched(WORK[name], folder, number), folder)
    return _goes_on(folder, name, found, f"{name}, killed at file operation {number}")


def _killed_after(draw: random.Random, folder: Path, name: str) -> str:
    begin(name, folder)
    seconds = draw.uniform(0.02, undisturbed(name)[1])
    found = forked(WORK[name], folder, stop=(seconds, signal.SIGKILL))
    return _goes_on(folder, name, found, f"{name}, killed after {seconds:.2f} s")


def _interrupted(draw: random.Random, folder: Path, name: str) -> str:
    if name not in WORK:
        found, what = _reproduced_by_two(folder, draw.uniform(0.2, 25)), name
        return (
            f"{what}: {found.code} {found.err[-300:]}"
            if found.fault or found.code not in (0, 130)
            else ""
        )
    begin(name, folder)
    seconds = draw.uniform(0.1, undisturbed(name)[1])
    found = forked(lambda: _listening(WORK[name]), folder, stop=(seconds, signal.SIGINT))
    what = f"{name}, Ctrl-C after {seconds:.2f} s"
    if found.fault or found.code not in (0, 130):
        return f"{what}: {found.code} {found.err[-300:]}"
    return _goes_on(folder, name, found, what)


def _listening(work: Callable[[], int]) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a detached shell had ignored
    return work()


def _reproduced_by_two(folder: Path, seconds: float) -> Outcome:
    """Begin to reproduce the paper in two workers, as a user would, and press Ctrl-C: all processes end."""
    words = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); import sih_command; "
    words += "open('ready', 'w'); sih_command.run()"
    line = [sys.executable, "-c", words, "reproduce", "--jobs", "2", "--out", "out"]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    process = subprocess.Popen(line, cwd=folder, text=True, start_new_session=True, **pipes)
    while not (folder / "ready").exists() and process.poll() is None:
        time.sleep(0.01)
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    until = time.monotonic() + 20
    while (left := _group(process.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    return Outcome(process.returncode, "", f"{err}\nworkers live on: {left}" if left else err)


def _group(number: int) -> list[str]:
    """List the processes of a group."""
    return subprocess.run(
        ["pgrep", "-g", str(number)], capture_output=True, text=True, check=False
    ).stdout.split()


def _goes_on(folder: Path, name: str, stopped: Outcome, what: str) -> str:
    """Run the command again after it was stopped: it ends as if nothing had happened, and leaves nothing behind."""
    of_a_worker = name == "sweep" and stopped.code == 1 and "Traceback" not in stopped.err
    if stopped.code not in (0, 130, -signal.SIGKILL) and not of_a_worker:
        return f"{what}: {stopped.code} {stopped.err[-200:]}"
    if name in REPLACED:
        there = forked(command(*REPLACED[name]), folder)
        if there.code != 0:
            return f"{what}: neither the old folder nor the new one is there: {there.err or there.out[-200:]}"
    again = forked(WORK[name], folder)
    if again.code != 0:
        return f"{what}: does not go on: {again.err[-200:]}"
    left = [str(path) for path in folder.rglob(".*.part")]
    if left:
        return f"{what}: leaves {left}"
    wanted, got = undisturbed(name)[2], content(folder)
    different = sorted(
        file for file in wanted.keys() | got.keys() if wanted.get(file) != got.get(file)
    )
    shutil.rmtree(folder / "out")
    return f"{what}: differs in {different}" if different else ""
