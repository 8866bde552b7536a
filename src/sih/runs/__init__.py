"""Training runs on disk: read, written so that they can go on, found by name."""

from sih.runs.run import Run as Run
from sih.runs.run_store import RunStore as RunStore
