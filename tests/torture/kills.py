"""Kills: at every file operation of a command, and at random moments. Nothing is lost, and the result is the same."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from support.small_runs import WORDS

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
GRID = "[base]\nlags = [1, 2]\nstates = 3\nlength = 12\nheads = [1, 2]\ndim = 8\nqk_dim = 4\nsteps = 24\nbatch = 5\n"
GRID += "evaluate_every = 8\nheld_out = 7\n[grid]\nseed = [0, 1]\n"
TRAIN = [*WORDS, "out", "--checkpoint-seconds", "0"]


def _reproduce() -> int:
    """Make two small figures and the report, in this process."""
    import dataclasses

    from sih.cli import main, reproduce_command
    from sih.experiments import claim_expectations, head_counts

    chosen: list[Any] = [
        dataclasses.replace(
            claim_expectations.HISTOGRAM,
            config=claim_expectations.ClaimConfig(num_states=3, matrices=4, lags=(1, 2, 5)),
        ),
        dataclasses.replace(head_counts.EXPERIMENT, config=head_counts.HeadCountsConfig(largest=4)),
    ]
    reproduce_command.EXPERIMENTS = {one.name: one for one in chosen}  # type: ignore[attr-defined]
    return main(["reproduce", "--out", "out", "--jobs", "1"])


def _construct(lags: str) -> Callable[[], int]:
    return command("construct", "--lags", *lags.split(), "--length", "16", "--states", "3", "--out", "out")


WORK: dict[str, Callable[[], int]] = {
    "train": command(*TRAIN),
    "construct": _construct("1 2"),
    "reproduce": _reproduce,
    "sweep": command("sweep", "../grid.toml", "--out", "out", "--jobs", "1"),
}


def begin(name: str, folder: Path) -> None:
    """Prepare the folder: a circuit to be replaced, a grid."""
    (folder.parent / "grid.toml").write_text(GRID)
    if name == "construct":
        assert forked(_construct("1 3"), folder).code == 0


def content(folder: Path) -> dict[str, bytes]:
    """Read all that must come out the same: everything but times and versions."""
    left_out = ("environment.json", "results.csv", "success.png")
    paths = [path for path in sorted((folder / "out").rglob("*")) if path.is_file() and path.name not in left_out]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@cache
def undisturbed(name: str) -> tuple[int, dict[str, bytes]]:
    """Run a command to its end, and count its file operations."""
    with scratch() as folder:
        begin(name, folder)
        found = forked(lambda: _watched(WORK[name], folder, None), folder)
        assert found.code == 0, found.err
        return int((folder.parent / "operations").read_text()), content(folder)


def _watched(work: Callable[[], int], folder: Path, last: int | None) -> int:
    """Do the work and count its file operations below the folder, or end at the one with the number `last`."""
    count, place = 0, str(folder)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal count
        if event not in EVENTS or not arguments or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if os.path.abspath(os.fsdecode(arguments[0])).startswith(place):
            count += 1
            if count == last:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    code = work()
    total, place = count, "\0"
    (folder.parent / "operations").write_text(str(total))
    return code


def trials(share: float) -> Iterator[Trial]:
    """Kill at every file operation; a share of it takes every so-manieth."""
    for name in WORK:
        for number in range(1, undisturbed(name)[0] + 1, max(1, round(1 / share))):
            yield lambda draw, folder, name=name, number=number: _killed_at(folder, name, number)  # type: ignore[misc]


def random_trials(share: float) -> Iterator[Trial]:
    for number in range(int(200 * share)):
        name = list(WORK)[number % len(WORK)]
        yield lambda draw, folder, name=name: _killed_after(draw, folder, name)  # type: ignore[misc]


def _killed_at(folder: Path, name: str, number: int) -> str:
    begin(name, folder)
    found = forked(lambda: _watched(WORK[name], folder, number), folder)
    return _goes_on(folder, name, found, f"{name}, killed at file operation {number}")


def _killed_after(draw: random.Random, folder: Path, name: str) -> str:
    begin(name, folder)
    seconds = draw.uniform(0.05, 2.5)

    def work() -> int:
        signal.signal(signal.SIGVTALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        return WORK[name]()

    return _goes_on(folder, name, forked(work, folder), f"{name}, killed after {seconds:.2f} s")


def _goes_on(folder: Path, name: str, killed: Outcome, what: str) -> str:
    """Run the command again after a kill: it ends as if nothing had happened, and leaves nothing behind."""
    if killed.code not in (0, -signal.SIGKILL):
        return f"{what}: {killed.code} {killed.err[-200:]}"
    if name == "construct":
        there = forked(command("verify", "out"), folder)
        if there.code != 0:
            return f"{what}: neither the old circuit nor the new one is there: {there.err or there.out[-200:]}"
    again = forked(WORK[name], folder)
    if again.code != 0:
        return f"{what}: does not go on: {again.err[-200:]}"
    left = [str(path) for path in folder.rglob(".*.part")]
    if left:
        return f"{what}: leaves {left}"
    wanted, got = undisturbed(name)[1], content(folder)
    different = sorted(file for file in wanted.keys() | got.keys() if wanted.get(file) != got.get(file))
    shutil.rmtree(folder / "out")
    return f"{what}: differs in {different}" if different else ""
