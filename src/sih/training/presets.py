"""Training configurations by name. A preset is a function that returns a configuration; what it is given wins.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss, and say what they change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sih.training.config import TrainConfig


def paper(**changes: Any) -> TrainConfig:
    """The paper's: batches of 256, Adam at a constant 1e-3, standard transformer with d = 64."""
    return TrainConfig(**changes)


def paper_disentangled(**changes: Any) -> TrainConfig:
    """The paper's, for the disentangled transformer."""
    return TrainConfig(**{"model": "disentangled", **changes})


def harmonic(**changes: Any) -> TrainConfig:
    """Finds the circuit in minutes: harmonic initialisation, layers that keep to their parts at first, short sequences
    before long ones, batches of 64, a high rate that falls. Model, task and loss are the paper's (docs/training.md).
    """
    disentangled = changes.get("model") == "disentangled"
    steps, length = changes.get("steps", 3000 if disentangled else 3600), changes.get("length", 128)
    first, second = (2 * steps // 5, 11 * steps // 15) if disentangled else (steps // 6, 5 * steps // 12)
    recipe = {
        "init": "harmonic",
        "max_period": 8,
        "steps": steps,
        "batch": 64,
        "learning_rate": 5e-2 if disentangled else 5e-3,
        "betas": (0.9, 0.99),
        "schedule": "cosine",
        "warmup": min(50, steps),
        "held": min(200 if disentangled else 400, steps // 4),
        "shorter": tuple((until, short) for until, short in ((first, 32), (second, 64)) if until and short < length),
        "stored": "float16" if disentangled else "float32",
    }
    return TrainConfig(**{**recipe, **changes})


PRESETS: dict[str, Callable[..., TrainConfig]] = {
    "paper": paper,
    "paper-disentangled": paper_disentangled,
    "harmonic": harmonic,
}
