"""Training runs on disk: read, written so that they can go on, found by name."""

from sih.training.runs.run import Run as Run
from sih.training.runs.run_store import RunStore as RunStore
