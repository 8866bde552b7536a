"""`python -m sih.cli`, and the `sih` command."""

import sys

from sih.cli import main


def run() -> None:
    sys.exit(main())


if __name__ == "__main__":
    run()
