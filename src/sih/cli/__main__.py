"""`python -m sih.cli`; the `sih` command is `sih_command.py`, next to the package."""

import sys

from sih.cli import main


def run() -> None:
    sys.exit(main())


if __name__ == "__main__":
    run()
