"""Training configurations by name. A preset is a function that returns a configuration; what it is given wins.

`paper` is the paper's own setting (Sec. 6). The others keep its model, task and loss, and say what they change.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sih.construction import least_heads
from sih.models.storage import SHIPPED
from sih.runs.run import CONFIG, Run
from sih.training.trainer import TrainConfig


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


def named(name: str) -> TrainConfig:
    """A model's configuration by name: its own if it ships, else the recipe for KIND-LAGS[-HEADS][-dimN][-seedN].

    Heads are those of each layer, the circuit's unless said (one in the second layer for two lags).

    >>> config = named("standard-1.2.3.4.6-1.3.1")
    >>> config.lags, config.heads, config.dim
    ((1, 2, 3, 4, 6), (1, 3, 1), 64)
    """
    shipped = SHIPPED / name
    if name and (shipped / CONFIG).is_file():
        return Run(shipped).config
    found = re.fullmatch(r"(standard|disentangled|paper)-([\d.]+)(?:-([\d.]+))?(?:-dim(\d+))?(?:-seed(\d+))?", name)
    try:
        assert found
        kind, lags, heads = found[1], _numbers(found[2]), _numbers(found[3]) if found[3] else None
    except (AssertionError, ValueError):
        raise ValueError(
            f"a model's name is like standard-1.2.3 or disentangled-1.3-1.1.1-seed1; got {name!r}"
        ) from None
    enough = 1 if len(lags) == 2 else least_heads(lags).heads
    changes: dict[str, Any] = {"lags": lags, "heads": heads or (1, enough, 1), "seed": int(found[5] or 0)}
    if kind == "disentangled":
        return harmonic(**changes, model=kind, evaluate_every=100)
    changes["dim"] = int(found[4] or 64)
    return paper(**changes) if kind == "paper" else harmonic(**changes, evaluate_every=100)


def _numbers(dotted: str) -> tuple[int, ...]:
    return tuple(int(number) for number in dotted.split("."))
