"""Runs small enough to train in a moment, for all tests of experiments."""

from __future__ import annotations

import pytest
from support.small_runs import make_all

from sih.training.config import TrainConfig

SMALL = TrainConfig(lags=(1, 2), states=3, length=20, heads=(1, 2, 1), steps=1, batch=2, held_out=2)


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Hardly trained, but trained: by name, their folders."""
    configs = {
        "standard-1.2": SMALL,
        "standard-1.2-seed1": SMALL.replace(seed=1),
        "disentangled-1.2": SMALL.replace(model="disentangled", length=16),
        "another-matrix": SMALL.replace(matrix_seed=1),
        "two-layers": SMALL.replace(heads=(1, 1)),
        "one-head": SMALL.replace(heads=(1, 1, 1)),
    }
    parent = make_all(tmp_path_factory.mktemp("runs"), configs)
    return {name: str(parent / name) for name in configs}
