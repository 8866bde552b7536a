"""Measures how long each figure takes, for `SECONDS` of `sih/report/seconds.py`: what `sih reproduce` weighs by.

    XDG_CACHE_HOME=$(mktemp -d) python -m benchmarks.figure_seconds

Seconds of processor time, of one process and one thread, with the drawing of the figure. In a new
cache folder: fits of heads are kept there, and the second time there is less to do.
"""

import tempfile
import time
from pathlib import Path

from sih.report.subjects import figures
from sih.results.pictures import make
from sih.training.runs.run_store import RunStore


def main() -> None:
    """Make every figure in a new folder and print its seconds as soon as it is there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for name, figure in figures().items():
            began = time.process_time()
            make(figure, out, RunStore(out / "runs"))
            print(f'    "{name}": {time.process_time() - began:.1f},', flush=True)


if __name__ == "__main__":
    main()
