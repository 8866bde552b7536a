"""Training runs on disk: read, written so that they can be resumed, found by name."""

from sih.training.runs.run import Run as Run
from sih.training.runs.run_store import RunStore as RunStore
