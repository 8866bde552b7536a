"""The `sih` command, outside the package: loading that takes a second or two, in which a Ctrl-C may come."""

from __future__ import annotations

import os
import signal
import sys


def run() -> None:
    """Load the package and run the command line. A Ctrl-C before it listens ends the process without a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else a shell had it ignored
        signal.signal(signal.SIGINT, _leave)
    from sih.cli import main

    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main())


def _leave(*_: object) -> None:
    os.write(2, b"sih: interrupted\n")
    os._exit(130)
