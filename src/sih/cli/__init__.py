"""The command line: the only place that parses arguments, prints and sets exit codes.

Exit codes: 0 done, 1 a check failed, 2 bad input (one line on standard error), 130
interrupted and resumable. A command is a function `command(...) -> int | None` in its
own module, which is loaded only for that command. Its signature defines the flags
(tyro), its docstring the help. Bad input raises a ValueError, wherever it is found.
"""

import functools
import importlib
import inspect
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from sih.base.errors import FieldError
from sih.base.files import check_place
from sih_command import COMMANDS as COMMANDS
from sih_command import answer, unknown

WRITTEN = ("out", "export", "draw", "table")
"""The flags for output paths."""
STARTED = ("train", "construct", "figure")
"""Commands with flags that depend on the command line: `start_from(words)` in their
module returns the command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a name may contain characters that a terminal cannot show
    if (said := answer(words)) is not None:
        print(said)
        return 0
    if words[0] == "help":
        words = [*words[1:], "--help"]
    command = None
    name = " ".join(words[:2]) if " ".join(words[:2]) in COMMANDS else words[0]
    try:
        if name not in COMMANDS:
            raise ValueError(unknown(name))
        module, function = COMMANDS[name][0].split(":")
        found = importlib.import_module(module)
        command, words = getattr(found, function), words[len(name.split()) :]
        if name in STARTED:
            command, words = found.start_from(words)
        with _no_ctrl_c_lost():
            return _parse(command, name, words)() or 0
    except ValueError as error:
        print(f"sih: {_flag(command, error)}{_one_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        print(f"sih: interrupted{': ' + str(error) if str(error) else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of a pipe, e.g. `head`, has read enough
        sys.stderr.close()
        return 0
    except (OSError, MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error):
            raise
        why = _one_line(str(error)) or "there is not enough memory"
        print(
            f"sih: {'out of memory: ' if not isinstance(error, OSError) else ''}{why[:300]}",
            file=sys.stderr,
        )
        return 2


@contextmanager
def _no_ctrl_c_lost() -> Iterator[None]:
    """Repeat a Ctrl-C that came in a destructor or callback, where Python only prints
    the exception.
    """
    before = sys.unraisablehook

    def hook(lost: "sys.UnraisableHookArgs") -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            before(lost)
            return
        threading.Timer(
            0.01, os.kill, (os.getpid(), signal.SIGINT)
        ).start()  # when the callback has returned

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _parse(
    command: Callable[..., int | None], name: str, words: list[str]
) -> Callable[[], int | None]:
    """Return the command's arguments; turn tyro's boxed messages into a ValueError of
    one line.
    """
    import tyro

    from sih.cli.matrix_flag import REGISTRY

    @functools.wraps(command)
    def bind(*args: object, **kwargs: object) -> Callable[[], int | None]:
        for place in (kwargs.get(name) for name in WRITTEN):
            if isinstance(place, Path):
                check_place(place)  # before anything is computed
        return functools.partial(command, *args, **kwargs)

    complaint, printed = io.StringIO(), _Help()
    try:
        with redirect_stderr(complaint), redirect_stdout(printed), REGISTRY:
            flat = (tyro.conf.OmitArgPrefixes, tyro.conf.AvoidSubcommands)
            return tyro.cli(bind, args=words, prog=f"sih {name}", config=flat)
    except SystemExit as stop:
        if stop.code in (0, None):  # --help
            print(without_empty_defaults(printed.getvalue()), end="")
            return lambda: 0
        raise ValueError(
            _unbox(complaint.getvalue()) or f"could not read the arguments {words}"
        ) from None


class _Help(io.StringIO):
    """A help text, in colours if it will be shown on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._shown_on = sys.stdout

    @property
    def encoding(self) -> str | None:  # type: ignore[override]
        return self._shown_on.encoding

    def isatty(self) -> bool:
        return self._shown_on.isatty()


def without_empty_defaults(text: str) -> str:
    """Return a help text with spaces for the defaults None and nothing, even across
    line breaks.

    >>> without_empty_defaults("the seed (default: 0) of P (default: None) |")
    'the seed (default: 0) of P                 |'
    """

    def spaces(found: re.Match[str]) -> str:
        return re.sub(r"[^\s│]", " ", found[0])

    return re.sub(r"\(default:(?:\s|│)*(?:None)?\)", spaces, text)


def _flag(command: Callable[..., int | None] | None, error: ValueError) -> str:
    """Return the name of the flag that an error concerns, if the command has one for
    its field.
    """
    if command is None or not isinstance(error, FieldError):
        return ""
    flags = inspect.signature(command).parameters
    places = (error.field.replace(".", "_"), error.field.partition(".")[0])
    found = next((place for place in places if place in flags), None)
    return f"--{found.replace('_', '-')}: " if found else ""


def _unbox(box: str) -> str:
    """Return the paragraphs of a box drawn on a terminal as one line.

    If the terminal cannot draw lines, dashes replace them, and the title is a
    paragraph.
    """
    drawn = "╭" in box
    lines = [line.strip("│ ") for line in box.splitlines() if not line.startswith(("╭", "╰"))]
    rules = ("; " if re.fullmatch("[─-]{5,}", line) else line for line in lines)
    paragraphs = " ".join(rules).split("; ")[0 if drawn else 1 :]
    said = [re.sub("^Error parsing [a-z]+: ", "", _one_line(paragraph)) for paragraph in paragraphs]
    return "; ".join(paragraph.rstrip(".") for paragraph in said if paragraph)


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
