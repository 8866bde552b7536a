"""A trial: something done in a forked process with torch loaded, and what came of it."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import math
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 60.0
"""How long a trial may take before it counts as hanging."""
MEMORY = 6 * 10**9
"""Bytes of address space that a trial may take beyond torch's own."""


@dataclass
class Tally:
    """Counts the trials of a part; `failed` has the number and the reason of each that was not clean."""

    part: str
    tried: int = 0
    failed: list[tuple[int, str]] = field(default_factory=list)
    skipped: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Holds how a process ended: its exit code, negative for a signal, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def fault(self) -> str:
        """Say what is wrong with it, whatever was asked: a hang, a crash, a traceback, or an error of several lines."""
        if self.code == -signal.SIGALRM:
            return f"hangs: over {SECONDS:g} s"
        if self.code not in (0, 1, 2, 130) or "Traceback" in self.err:
            return f"exit code {self.code}: {self.err.strip()[-300:]}"
        lines = self.err.strip().splitlines()
        said = [line for line in lines if line.startswith("sih: ")]
        alone = (
            len(said) == 1 and lines[-1] == said[0] and "Warning" not in self.err
        )  # before it, progress alone
        if self.code in (2, 130) and not alone:
            return f"not one line for one error: {self.err[:300]}"
        return ""


def warm() -> None:
    """Load once, for all forks, what commands load: without threads, which a fork would lose."""
    import torch

    torch.set_num_threads(1)
    from sih.cli import COMMANDS

    places = [
        "torch._dynamo",
        "matplotlib.pyplot",
        "matplotlib.backends.backend_pdf",
        "matplotlib.backends.backend_svg",
    ]
    for place in (
        *(place for place, _ in COMMANDS.values()),
        *places,
    ):  # torch's optimisers load _dynamo, 1.5 s
        importlib.import_module(place.split(":")[0])
    from sih.results import style

    style._RC |= {
        "pdf.fonttype": 3,
        "savefig.dpi": 50,
    }  # choosing letters of fonts takes half of a figure's time


def forked(
    work: Callable[[], int | None],
    folder: Path,
    memory: int = MEMORY,
    seconds: float = SECONDS,
    stop: tuple[float, int] | None = None,
) -> Outcome:
    """Do something in a process of its own, in a folder, with a limit on its time and memory.

    With `stop`, it and all that it started are sent a signal after so many seconds.
    """
    out, err = (folder.parent / f"{folder.name}.{name}" for name in ("out", "err"))
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.setitimer(signal.ITIMER_REAL, seconds)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + memory, taken + memory))
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        code = 70
        try:
            os.chdir(folder)
            code = work() or 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        except BaseException:
            os.write(2, traceback.format_exc().encode(errors="replace"))
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    if stop is not None:
        ended = os.pidfd_open(child)
        if not select.select([ended], [], [], stop[0])[0]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, stop[1])
        os.close(ended)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it left behind
    return Outcome(
        os.waitstatus_to_exitcode(status),
        out.read_text(errors="replace"),
        err.read_text(errors="replace"),
    )


def command(*words: str) -> Callable[[], int]:
    """Make a command line something to do in a fork."""

    def run() -> int:
        from sih.cli import main

        return main(list(words))

    return run


Trial = Callable[[random.Random, Path], str]
"""Does one trial in a folder of its own, and says what is wrong, "" if nothing is."""


def tally(
    part: str,
    trials: Iterable[Trial],
    seed: int,
    only: Sequence[int] | None = None,
    seconds: float = math.inf,
) -> Tally:
    """Run the trials one after the other, none begun after so many seconds; nothing that one does ends the others."""
    found, began = Tally(part), time.monotonic()
    for number, trial in enumerate(trials):
        if only is not None and number not in only:
            continue
        if time.monotonic() - began > seconds:
            break
        found.tried += 1
        with scratch() as folder:
            try:
                wrong = trial(random.Random(f"{part} {seed} {number}"), folder)
            except Exception:
                wrong = "the trial itself failed: " + traceback.format_exc(limit=-3)
        if wrong:
            found.failed.append((number, wrong))
            print(f"  {part} {number}: {wrong}", flush=True)
    found.seconds = time.monotonic() - began
    return found


SHARED = (
    "/dev/shm"
    if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 10**9
    else None
)
"""Where trials are done: in memory where there is such a place, for every write waits for the disk."""


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="torture-", dir=SHARED, ignore_cleanup_errors=True
    ) as name:
        folder = Path(name) / "here"
        folder.mkdir()
        yield folder


def kept(name: str) -> Path:
    """Make a folder for what many trials start from. It goes with this process, not with its forks."""
    place = Path(tempfile.mkdtemp(prefix=f"torture-{name}-", dir=SHARED))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (place / "here").mkdir()
    return place / "here"
