"""Malformed command lines: every command, with flags that are missing, doubled, misspelt or absurd."""

from __future__ import annotations

import importlib
import inspect
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sih.cli import COMMANDS
from torture.damage import GRID
from torture.trial import SECONDS, Outcome, Trial, command, forked, kept

BASE = {
    "sample": "--size 2 --length 8 --out s.npz",
    "predict": "given.npz --out p.npz",
    "claim": "--states 3 --matrices 2 --lags 1 2 --no-figures --out c",
    "claim search": "--states 3 --sizes 3 --descents 2 --starts 2 --steps 2 --out d",
    "claim rates": "--states 3 --lags 1 2 --sequences 20 --length 8 --out r",
    "claim beta": "--states 3 --lags 1 2 --sequences 20 --lengths 8 --out b",
    "heads": "--lags 1 2 4 --time-limit 0.5",
    "construct": "--lags 1 2 --length 12 --states 3 --out k",
    "verify": "circuit --size 2",
    "export": "circuit --out l",
    "benchmark circuits": "--out b --circuits 1.2.3-soft --pairs 0",
    "train": "--lags 1 2 --states 3 --length 8 --heads 1 1 --dim 4 --qk-dim 2 --steps 2 --batch 2 --held-out 2 "
    "--threads 1 --out t",
    "runs": ".",
    "runs show": "t",
    "runs evaluate": "t",
    "runs formation": "t",
    "runs rm": "t --yes",
    "models": "--plain",
    "explore": "--export e.html --sequences 1 --length 16",
    "figure": "--list",
    "reproduce": "--jobs 0",
    "sweep": "grid.toml --out w --jobs 0",
    "infer": "given.npz --lags 1 2",
}
"""A quick line of every command, to be malformed. A new command has a line here (tests/unit/test_layout.py asks)."""
ALSO = {
    "export": "lens --to sih --out m",
    "sweep": "grid.toml --out w --jobs 1",
}
"""Second lines of some."""


@cache
def flags() -> list[str]:
    """List the flags of all commands."""
    found = {"nonsense", "lags", "states", "heads", "dim", "batch", "init", "preset"}
    for place, _ in COMMANDS.values():
        module, name = place.split(":")
        found |= inspect.signature(getattr(importlib.import_module(module), name)).parameters.keys()
    return sorted(f"--{name.replace('_', '-')}" for name in found)


WORDS = [
    *(
        "",
        "-1",
        "0",
        "1",
        "2",
        "3",
        "8",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "0x10",
        "1,2",
        "one",
        "2147483648",
        "-2147483649",
    ),
    *(
        "9223372036854775808",
        "1000000000000",
        "[/red]",
        "[bold]x.npz",
        "\udcff.npz",
        "..",
        "/dev/null",
        "/dev/full",
    ),
    *(
        "/proc/self/mem",
        "given.npz",
        "given.npz/x",
        "circuit",
        "a" * 300,
        "--",
        "-",
        "α",
        "line\nbreak",
        "{}",
        "None",
    ),
]
LONG, SHORT = ("reproduce", "benchmark", "figure", "claim rates", "claim beta", "explore"), 10.0
"""Commands that take minutes if their line is in order, and the seconds after which that is believed."""
PROCESSES = 50
"""The first so many run as processes of their own, as a user's would."""


def trials(share: float) -> Iterator[Trial]:
    for number in range(int(1000 * share)):
        yield _as_process if number < PROCESSES * share else _in_fork


def malformed(draw: random.Random) -> list[str]:
    name, words = draw.choice(
        [(name, line.split()) for table in (BASE, ALSO) for name, line in table.items()]
    )
    for _ in range(draw.randint(1, 3)):
        change, place = draw.random(), draw.randrange(len(words) + 1)
        if change < 0.3 and words:
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        elif change < 0.4 and words:
            del words[min(place, len(words) - 1)]
        elif change < 0.9:
            words[place:place] = [draw.choice(flags()), draw.choice(WORDS)]
        else:
            words.insert(place, draw.choice(WORDS))
    if name == "explore" and "--export" not in words:
        words += ["--export", "e.html"]  # a page that is served would go on for ever
    return [*name.split(), *words]


def allowed(words: list[str]) -> float:
    """Say how many seconds a line may take. One that is well-formed after all and takes minutes is cut short."""
    return SHORT if " ".join(words).startswith(LONG) else SECONDS


@cache
def _given() -> Path:
    """Make what the lines name, once: a sample, a circuit, the circuit exported, a grid."""
    folder = kept("given")
    (folder / "grid.toml").write_text(GRID)
    for line in (
        "sample --size 2 --length 8 --out given.npz",
        "construct --lags 1 2 --length 12 --out circuit",
        "export circuit --out lens",
    ):
        made = forked(command(*line.split()), folder)
        assert made.code == 0, made.err
    return folder


def _in_fork(draw: random.Random, folder: Path) -> str:
    words = malformed(draw)
    shutil.copytree(_given(), folder, dirs_exist_ok=True)
    return _said(words, forked(command(*words), folder, seconds=allowed(words)))


def _as_process(draw: random.Random, folder: Path) -> str:
    words = malformed(draw)
    shutil.copytree(_given(), folder, dirs_exist_ok=True)
    line, how = (
        [sys.executable, "-m", "sih.cli", *words],
        {"cwd": folder, "capture_output": True, "text": True},
    )
    try:
        done = subprocess.run(
            line, timeout=2 * allowed(words), env=dict(os.environ), check=False, **how
        )  # type: ignore[call-overload]
    except subprocess.TimeoutExpired as late:
        return _said(
            words, Outcome(-signal.SIGALRM, "", (late.stderr or b"").decode(errors="replace"))
        )
    return _said(words, Outcome(done.returncode, done.stdout, done.stderr))


def _said(words: list[str], found: Outcome) -> str:
    if found.code == -signal.SIGALRM and allowed(words) == SHORT and "Traceback" not in found.err:
        return ""
    return f"{words}: {found.fault}" if found.fault else ""
