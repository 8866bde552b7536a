"""Runs the code of pages and compares what it prints with the block that stands below it.

    python -m website.blocks PAGE.md ...           the blocks that differ
    python -m website.blocks --write PAGE.md ...   put what is printed into the pages

The blocks of a page share one namespace and one temporary folder. A `python` block is
executed, an `sh` block is run line by line, and a `toml` block is saved as the file that its
first line names. If the next block is a `text` block, it is
the output, in which `...` stands for anything. Seconds and rates are not compared. A block
after `<!-- not run: REASON -->` is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"(<!-- not run: [^>]*-->\n)?^```(\w+)\n(.*?)^```$", flags=re.M | re.S)
MACHINE = re.compile(
    r"[\d,]+ tokens/s|\b[\d.,]+ s\b|\b\d+ threads?\b|\b[\d.]+e-\d\d\b|(?<= )[\d,]+(?=  \d\.\d{4}  )"
)
"""Text that depends on the machine: rates, seconds (in lists of runs before the loss), threads and
errors of rounding."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COLUMNS = "88"
"""Width of the console in which commands print."""


@dataclass
class Block:
    """A block of code, the output printed below it, and where that output stands in the page."""

    language: str
    code: str
    output: str | None
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    """List the blocks of a page that are run."""
    found = list(BLOCK.finditer(text))
    listed = []
    for block, below in zip(found, [*found[1:], None], strict=False):
        skip, language, code = block.groups()
        if skip or language not in ("python", "sh", "toml"):
            continue
        printed, span = None, (0, 0)
        if below and below[2] == "text":
            printed, span = below[3], below.span(3)
        listed.append(Block(language, code, printed, span))
    return listed


def run(text: str) -> Iterator[tuple[Block, str]]:
    """Run the blocks of a page in the current folder and yield each with what it printed."""
    namespace: dict[str, object] = {}
    for block in blocks(text):
        if block.language == "toml":
            named = re.match(r"# (\S+\.toml)\n", block.code)
            Path(named[1] if named else "grid.toml").write_text(block.code)
        elif block.language == "python":
            yield block, _run_python(block.code, namespace)
        else:
            yield block, _run_shell(block.code)


def same(wanted: str, printed: str) -> bool:
    """Tell whether an output is the one in the page.

    >>> same("KL 0.1, 3.2 s", "KL 0.1, 4.0 s"), same("a ... d", "a b c d"), same("1", "2")
    (True, True, False)
    """
    return doctest.OutputChecker().check_output(
        MACHINE.sub("(machine)", wanted), MACHINE.sub("(machine)", printed), FLAGS
    )


def differences(text: str) -> list[str]:
    """List the blocks of a page that print something else than the page says."""
    return [
        f"after\n{block.code}\nthe page has\n{block.output}\nprinted\n{printed}"
        for block, printed in run(text)
        if block.output is not None and not same(block.output, printed)
    ]


def rewritten(text: str) -> str:
    """Return a page with what its blocks print now, where that differs."""
    changed = [
        (block.span, printed)
        for block, printed in run(text)
        if block.output is not None and not same(block.output, printed)
    ]
    for (start, end), printed in reversed(changed):
        text = f"{text[:start]}{printed.rstrip()}\n{text[end:]}"
    return text


def _run_python(code: str, namespace: dict[str, object]) -> str:
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        exec(compile(code, "block", "exec"), namespace)
    return written.getvalue()


def _run_shell(code: str) -> str:
    """Run lines that call `sih` in this process, which is faster, and all others by bash."""
    return "".join(_run_line(line) for line in code.replace("\\\n", " ").splitlines())


def _run_line(line: str) -> str:
    environment = {"COLUMNS": COLUMNS, "NO_COLOR": "1"}
    if not re.fullmatch(r"sih [^|&;<>$]*", line):
        done = subprocess.run(
            ["bash", "-ec", line],
            capture_output=True,
            text=True,
            env={**os.environ, **environment},
            check=False,
        )
        return done.stdout + done.stderr
    from sih.cli import main

    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    written = io.StringIO()
    try:
        with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
            main(shlex.split(line, comments=True)[1:])
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return written.getvalue()


def check(arguments: list[str]) -> int:
    """Check or rewrite pages. Returns 1 if a block of a page that is checked differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="put what is printed into the pages")
    options = parser.parse_args(arguments)
    failed = 0
    for page in [path.resolve() for path in options.pages]:
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            if options.write:
                new = rewritten(text)
                print(f"{page.name}: {'rewritten' if new != text else 'the same'}")
                page.write_text(new)
                continue
            found = differences(text)
        print(f"{page.name}: {len(blocks(text))} blocks run, {len(found)} differ", *found, sep="\n")
        failed += len(found)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(check(sys.argv[1:]))
