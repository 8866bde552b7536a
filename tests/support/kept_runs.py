"""Runs whose weights are kept along the way, long enough to read a formation from."""

from __future__ import annotations

from pathlib import Path

from support.small_runs import SHORT

import sih
from sih.models.storage import weights_file
from sih.training.config import TrainConfig
from sih.training.runs.run import Run, kept_path
from sih.training.runs.run_writer import RunWriter

LONG = SHORT.replace(length=20, states=5)
"""Long enough for a window from 17 tokens on, with a matrix whose rows differ enough to tell lags apart there."""
STEPS = (8, 16, 24)
"""The steps that `make_kept` keeps."""


def make_kept(
    folder: Path, config: TrainConfig = LONG, keep_every: int = 8, stop_after: int | None = None
) -> Run:
    """Train a run that keeps weights."""
    writer = RunWriter(config, folder, threads=1, keep_every=keep_every)
    for step in writer:
        if step.step == stop_after:
            writer.save()
            break
    return Run(folder)


def with_circuit(folder: Path, steps: tuple[int, ...]) -> Run:
    """Train a run of the shape of a construction, and put the construction's weights at these of its kept steps."""
    task = LONG.task.build()
    assert isinstance(task, sih.Task)
    circuit = sih.construct(task, readout="logit")
    run = make_kept(folder, LONG.replace(model="disentangled", heads=circuit.config.heads))
    weights = {name: weight.clone() for name, weight in circuit.state_dict().items()}
    model = run.model_at(steps[0])
    assert isinstance(model, sih.DisentangledTransformer)
    for name in weights:
        if name.startswith("A."):
            weights[name] *= model.config.temperature / circuit.config.temperature
    model.load_state_dict(weights)
    for step in steps:
        kept_path(folder, step).write_bytes(weights_file(model, "float16"))
    return run
