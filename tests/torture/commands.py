"""Malformed command lines: every command, with flags that are missing, doubled, misspelt or absurd."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from torture.trial import Outcome, Trial, command, forked

BASE = {
    "sample": "--size 2 --length 8 --out s.npz",
    "predict": "given.npz --out p.npz",
    "claim": "--states 3 --matrices 2 --lags 1 2 --no-figures --out c",
    "claim search": "--states 3 --sizes 3 --descents 2 --starts 2 --steps 2 --out d",
    "heads": "--lags 1 2 4 --time-limit 0.5",
    "construct": "--lags 1 2 --length 12 --states 3 --out k",
    "verify": "circuit --size 2",
    "train": "--lags 1 2 --states 3 --length 8 --heads 1 1 --dim 4 --qk-dim 2 --steps 2 --batch 2 --held-out 2 "
    "--threads 1 --out t",
    "runs": ".",
    "runs rm": "t --yes",
    "models": "--plain",
    "explore": "--export e.html --sequences 1 --length 16",
    "figure": "--list",
    "reproduce": "--jobs 0",
    "sweep": "grid.toml --out w --jobs 0",
    "infer": "given.npz --lags 1 2",
}
FLAGS = [
    "--lags",
    "--length",
    "--states",
    "--size",
    "--seed",
    "--out",
    "--matrix",
    "--kind",
    "--concentration",
    "--heads",
    "--dim",
    "--steps",
    "--beta",
    "--lam",
    "--temper",
    "--target",
    "--third",
    "--evidence",
    "--dtype",
    "--time-limit",
    "--jobs",
    "--host",
    "--port",
    "--model",
    "--preset",
    "--init",
    "--batch",
    "--held-out",
    "--descents",
    "--sizes",
    "--tolerance",
    "--nonsense",
    "--draw",
    "--device",
    "--threads",
    "--learning-rate",
    "--predictor",
]
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
    *("9223372036854775808", "1000000000000", "[/red]", "[bold]x.npz", "\udcff.npz", "..", "/dev/null", "/dev/full"),
    *("/proc/self/mem", "given.npz", "given.npz/x", "circuit", "a" * 300, "--", "-", "α", "line\nbreak", "{}", "None"),
]
PROCESSES = 50
"""The first so many run as processes of their own, as a user's would."""


def trials(share: float) -> Iterator[Trial]:
    for number in range(int(1000 * share)):
        yield _as_process if number < PROCESSES * share else _in_fork


def malformed(draw: random.Random) -> list[str]:
    name = draw.choice(list(BASE))
    words = BASE[name].split()
    for _ in range(draw.randint(1, 3)):
        change, place = draw.random(), draw.randrange(len(words) + 1)
        if change < 0.3 and words:
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        elif change < 0.4 and words:
            del words[min(place, len(words) - 1)]
        elif change < 0.9:
            words[place:place] = [draw.choice(FLAGS), draw.choice(WORDS)]
        else:
            words.insert(place, draw.choice(WORDS))
    if "explore" in name and "--export" not in words:
        words += ["--export", "e.html"]  # a page that is served would go on for ever
    if name == "reproduce" and "--jobs" not in words:
        words += ["--jobs", "0"]  # every figure of the paper takes minutes
    return [*name.split(), *words]


def _given(folder: Path) -> None:
    """Make what the lines name: a sample and a circuit."""
    made = forked(lambda: command("sample", "--size", "2", "--length", "8", "--out", "given.npz")(), folder)
    made = forked(lambda: command("construct", "--lags", "1", "2", "--length", "12", "--out", "circuit")(), folder)
    assert made.code == 0, made.err


def _in_fork(draw: random.Random, folder: Path) -> str:
    words = malformed(draw)
    if any(word.startswith(("given", "circuit")) for word in words):
        _given(folder)
    found = forked(command(*words), folder)
    return f"{words}: {found.fault}" if found.fault else ""


def _as_process(draw: random.Random, folder: Path) -> str:
    words = [word for word in malformed(draw) if "\0" not in word]
    line = [sys.executable, "-m", "sih.cli", *words]
    try:
        done = subprocess.run(
            line, cwd=folder, capture_output=True, text=True, timeout=120, env=dict(os.environ), check=False
        )
    except subprocess.TimeoutExpired:
        return f"{words}: hangs"
    fault = Outcome(done.returncode, done.stdout, done.stderr).fault
    return f"{words}: {fault}" if fault else ""
