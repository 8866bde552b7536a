"""How commands print: every console is made here, and takes no path, name or message for markup."""

from __future__ import annotations

import sys

from rich.console import Console


def plain_console(width: int | None = None, wrap: bool = True) -> Console:
    """Make a console that prints what it is given, `width` columns wide where the output is no terminal."""
    width = None if sys.stdout.isatty() else width
    return Console(soft_wrap=wrap, highlight=False, markup=False, emoji=False, width=width)
