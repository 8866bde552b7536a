"""Measures how long each experiment takes, for `SECONDS` of `sih/experiments/table.py`: what `sih reproduce` weighs by.

    XDG_CACHE_HOME=$(mktemp -d) python -m benchmarks.experiment_seconds

Seconds of processor time, of one process and one thread, with the drawing of the figure. In a new
cache folder: fits of heads are kept there, and the second time there is less to do.
"""

import tempfile
import time
from pathlib import Path

from sih.experiments.table import EXPERIMENTS
from sih.figures.drawn import make
from sih.runs.run_store import RunStore


def main() -> None:
    """Make every figure in a new folder and print its seconds as soon as it is there."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for name, experiment in EXPERIMENTS.items():
            began = time.process_time()
            make(experiment, out, RunStore(out / "runs"))
            print(f'    "{name}": {time.process_time() - began:.1f},', flush=True)


if __name__ == "__main__":
    main()
